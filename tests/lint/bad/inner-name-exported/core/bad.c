/* Wrong. */
int sherd__bad(void);
__attribute__((visibility("default"))) int sherd__bad(void)
{
    return 1;
}
