#ifndef SHERD_ERR_H
#define SHERD_ERR_H

#define SHERD_API __attribute__((visibility("default")))
SHERD_API const char *sherd_strerror(int err);

struct sherd__hidden;

#endif
