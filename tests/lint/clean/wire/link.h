#ifndef WIRE_LINK_H
#define WIRE_LINK_H

int sherd__link(int x);

#endif
