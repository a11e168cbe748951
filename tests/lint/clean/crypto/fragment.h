#ifndef CRYPTO_FRAGMENT_H
#define CRYPTO_FRAGMENT_H

int sherd__fragment(int x);

#endif
