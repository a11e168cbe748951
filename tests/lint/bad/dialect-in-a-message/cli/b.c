/* Command: a message. */
const char *sherd__b_message(void);
const char *sherd__b_message(void)
{
    return "the file is told to nobody";
}
