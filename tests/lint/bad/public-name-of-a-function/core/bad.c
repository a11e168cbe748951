/* A name that the text does not show. */
#define PUBLIC(name) sherd_##name

int PUBLIC(hidden_thing)(void);
int PUBLIC(hidden_thing)(void)
{
    return 1;
}
