/* Comments among the parameters. */
static int many(int a, int b, int c,
                /* the second half, */
                int d, int e,
                /* the rest */ int f, int g)
{
    return a + b + c + d + e + f + g;
}
