#ifndef MATRIX_BAD_H
#define MATRIX_BAD_H

typedef struct sherd_hidden_thing {
    int x;
} sherd_hidden_thing;

#endif
