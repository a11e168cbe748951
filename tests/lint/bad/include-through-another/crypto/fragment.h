#ifndef CRYPTO_FRAGMENT_H
#define CRYPTO_FRAGMENT_H

#include "matrix/m.h"
int sherd__fragment(int x);

#endif
