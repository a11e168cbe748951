/* Files that are part of the program, byte for byte. */
#ifndef CORE_EMBED_H
#define CORE_EMBED_H

/**
 * Declares `symbol`, the text of the file, and symbol_end, the zero byte after it. The assembler
 * includes the file, whose path begins at the top of the tree; the Makefile has the dependency of
 * the object on it. Outside functions.
 */
#define SHERD__EMBED(symbol, file)                                                                 \
    __asm__(".section .rodata\n"                                                                   \
            ".hidden " #symbol ", " #symbol "_end\n"                                               \
            ".global " #symbol "\n"                                                                \
            ".global " #symbol "_end\n" #symbol ":\n"                                              \
            ".incbin \"" file "\"\n" #symbol "_end:\n"                                             \
            ".byte 0\n"                                                                            \
            ".previous\n");                                                                        \
    extern const char symbol[], symbol##_end[]

#endif
