/* Wrong. */
int sherd__perm(int x);
int sherd__bad(int x);
int sherd__bad(int x)
{
    return sherd__perm(x);
}
