#ifndef WIRE_BAD_H
#define WIRE_BAD_H

typedef void (*sherd__bad)(int x, int y);

#endif
