/* Numbers as decimal text with a point, whatever locale the program and the thread have. */
#ifndef CORE_DECIMAL_H
#define CORE_DECIMAL_H

#include <stddef.h>

/** Does what strtod does in the C locale. */
double sherd__decimal_read(const char *text, char **end);
/** Writes x as printf does by "%g" with this precision in the C locale; 17 digits are read as the
 *  same bits. Returns the length, as snprintf. */
int sherd__decimal_write(char *out, size_t size, int digits, double x);

#endif
