#ifndef CRYPTO_PERM_H
#define CRYPTO_PERM_H

int sherd__perm(int x);

#endif
