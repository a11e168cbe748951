/* A source that was not compiled. */
#error
