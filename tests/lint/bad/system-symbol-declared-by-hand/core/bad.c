/* Wrong. */
unsigned long uv_hrtime(void);
unsigned long sherd__bad(void);
unsigned long sherd__bad(void)
{
    return uv_hrtime();
}
