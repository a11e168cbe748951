/* Folders of the user for files that the user did not name, by the XDG base directory rules. */
#ifndef STORE_FOLDER_H
#define STORE_FOLDER_H

#include <stdbool.h>
#include <sys/stat.h>

/** Returns "$VARIABLE/TAIL", or "~/DEFAULT/TAIL" where the variable is not set or not absolute, as
 *  the rules say. Creates nothing. The caller frees the path with sherd__free. NULL: no memory, or
 *  no home. */
char *sherd__user_folder(const char *variable, const char *preset, const char *tail);

/** Returns whether a file or folder belongs to this user, and no other user may write to it. */
bool sherd__owned(const struct stat *st);

#endif
