/* A locale with a decimal comma: one that is installed, or one that is compiled now. */
#ifndef SUPPORT_COMMA_LOCALE_H
#define SUPPORT_COMMA_LOCALE_H

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/** Sets LC_NUMERIC of the program to such a locale. Returns false, and prints a comment, if there
 *  is none. */
static inline bool comma_locale(void)
{
    static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8" };
    char folder[] = "/tmp/sherd-locale-XXXXXX", command[200];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_NUMERIC, names[i]) && localeconv()->decimal_point[0] == ',') return true;
    if (!mkdtemp(folder)) return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null",
             folder);
    bool made = system(command) == 0 && setenv("LOCPATH", folder, 1) == 0 &&
                setlocale(LC_NUMERIC, names[0]) && localeconv()->decimal_point[0] == ',';
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0 || !made) printf("# no locale with a decimal comma\n");
    return made;
}

#endif
