#ifndef MATRIX_BAD_H
#define MATRIX_BAD_H

typedef struct sherd__bad {
    int x;
} sherd__bad;

#endif
