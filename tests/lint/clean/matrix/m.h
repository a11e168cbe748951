#ifndef MATRIX_M_H
#define MATRIX_M_H

int sherd__m(int x);

#endif
