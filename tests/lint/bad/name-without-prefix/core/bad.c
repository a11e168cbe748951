/* Wrong. */
int helper(void);
int helper(void)
{
    return 1;
}
