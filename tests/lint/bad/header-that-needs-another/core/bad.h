#ifndef CORE_BAD_H
#define CORE_BAD_H

size_t sherd__bad(void);

#endif
