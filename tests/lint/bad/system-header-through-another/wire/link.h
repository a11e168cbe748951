#ifndef WIRE_LINK_H
#define WIRE_LINK_H

#include <uv.h>
int sherd__link(int x);

#endif
