#ifndef CORE_A_H
#define CORE_A_H

int sherd__a(int x);

#endif
