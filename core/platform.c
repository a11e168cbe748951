/*
 * Collects a description in a buffer and hashes it. A build id is read from memory and not from a
 * file: the file of a library that was replaced on disk belongs to later processes.
 */
#include "core/platform.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "core/buf.h"

extern char **environ;

typedef struct description {
    sherd__buf text;
    bool complete;
} description;

static void add(description *d, const void *bytes, size_t len)
{
    d->complete = d->complete && sherd__buf_append(&d->text, bytes, len) == SHERD_OK;
}

/* With the NUL, so that neighbours cannot be confused. */
static void add_text(description *d, const char *text)
{
    add(d, text, strlen(text) + 1);
}

/* ---- the machine ----------------------------------------------------------------------------- */

/* Returns false where the file cannot be read. */
static bool add_file(description *d, const char *path)
{
    char text[256];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (fd >= 0) close(fd);
    if (len > 0) add(d, text, (size_t)len);
    add_text(d, path);
    return len > 0;
}

#if defined(__x86_64__)
/* Registers that differ between the cores of a processor are left out: the APIC number (leaf 1,
 * ebx) and the kind of a core. */
static void add_processor(description *d)
{
    static const unsigned leaves[][2] = { { 0, 0 },          { 1, 0 },          { 7, 0 },
                                          { 7, 1 },          { 0x80000001, 0 }, { 0x80000002, 0 },
                                          { 0x80000003, 0 }, { 0x80000004, 0 } };
    unsigned r[4], low = 0, high = 0;
    bool xsave = false;
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        memset(r, 0, sizeof r);
        (void)__get_cpuid_count(leaves[i][0], leaves[i][1], &r[0], &r[1], &r[2], &r[3]);
        if (leaves[i][0] == 1) {
            r[1] = 0;
            xsave = r[2] & bit_OSXSAVE;
        }
        add(d, r, sizeof r);
    }
    if (xsave) __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    add(d, &low, sizeof low);
    add(d, &high, sizeof high);
}
#else
static void add_processor(description *d)
{
    (void)add_file(d, "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1");
}
#endif

static void add_machine(description *d)
{
    struct utsname name;
    const unsigned long features[] = { getauxval(AT_HWCAP), getauxval(AT_HWCAP2) };
    add_processor(d);
    add(d, features, sizeof features);
    (void)add_file(d, "/sys/devices/system/cpu/cpu0/microcode/version"); /* often missing in VMs */
    if (uname(&name) == 0) {
        add_text(d, name.release);
        add_text(d, name.version);
        add_text(d, name.machine);
    } else {
        d->complete = false;
    }
    if (!add_file(d, "/proc/sys/kernel/random/boot_id")) d->complete = false;
}

/* ---- the code -------------------------------------------------------------------------------- */

/* Adds the build id among the notes of a segment. Returns false if they have none. */
static bool add_build_id(description *d, const uint8_t *at, size_t len)
{
    ElfW(Nhdr) note;
    while (len >= sizeof note) {
        memcpy(&note, at, sizeof note);
        size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
        size_t value = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        if (name > len - sizeof note || value > len - sizeof note - name) return false;
        at += sizeof note;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at, "GNU", 4) == 0 &&
            note.n_descsz >= 8) {
            add(d, at + name, note.n_descsz);
            return true;
        }
        at += name + value;
        len -= sizeof note + name + value;
    }
    return false;
}

/* Size and time of the file are added in case that a build has a fixed id. */
static void add_stat(description *d, const char *path)
{
    struct stat st;
    if (stat(*path ? path : "/proc/self/exe", &st) != 0) return;
    add(d, &st.st_size, sizeof st.st_size);
    add(d, &st.st_mtim, sizeof st.st_mtim);
}

static int add_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
    description *d = ctx;
    bool found = false;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum && !found; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const void *at = (const void *)(info->dlpi_addr + h->p_vaddr);
        if (h->p_type == PT_NOTE) found = add_build_id(d, at, h->p_memsz);
    }
    if (!found) d->complete = false;
    add_stat(d, info->dlpi_name);
    return 0;
}

static bool selects_code(const char *variable)
{
    static const char *const prefixes[] = { "LD_", "GLIBC_TUNABLES=", "OPENBLAS_" };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

static void add_environment(description *d)
{
    for (char **e = environ; e && *e; e++)
        if (selects_code(*e)) add_text(d, *e);
}

bool sherd__platform_hash(uint8_t out[SHERD__HASH])
{
    description d = { .complete = true };
    sherd__buf_init(&d.text, 1u << 20, 0);
    add_machine(&d);
    dl_iterate_phdr(add_object, &d);
    add_environment(&d);
    const sherd__hash_part all = { d.text.data, d.text.len };
    if (d.complete) sherd__hash_of(&all, 1, out);
    sherd__buf_fini(&d.text);
    return d.complete;
}
