/* A comment before the function. */
/* first */ static int many(int a, int b, int c, int d, int e, int f, int g)
{
    return a + b + c + d + e + f + g;
}
