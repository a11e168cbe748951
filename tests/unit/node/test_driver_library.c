/*
 * Libraries of drivers that are missing or cannot be loaded, and files of devices that this process
 * may not use.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/backends/driver_library.h"

static char folder[] = "/tmp/sherd-files-XXXXXX";

static const char *in_folder(const char *name, char out[64])
{
    snprintf(out, 64, "%s/%s", folder, name);
    return out;
}

static void make_file(const char *name, unsigned mode)
{
    char path[64];
    FILE *f = fopen(in_folder(name, path), "w");
    assert_non_null(f);
    fputs("no library", f);
    fclose(f);
    assert_int_equal(chmod(path, mode), 0);
}

static int make_files(void **s)
{
    char group[64];
    (void)s;
    if (!mkdtemp(folder) || chmod(folder, 0755)) return -1;
    make_file("broken.so", 0644);
    make_file("open", 0666);
    make_file("group", 0060);
    make_file("owner", 0000);
    /* Not a group of this process, which may open a file of any other user otherwise. */
    return geteuid() == 0 ? chown(in_folder("group", group), 0, 65533) : 0;
}

static int remove_files(void **s)
{
    static const char *const names[] = { "broken.so", "open", "group", "owner" };
    char path[64];
    (void)s;
    for (size_t i = 0; i < 4; i++) (void)unlink(in_folder(names[i], path));
    return rmdir(folder);
}

static int load(const char *file, const char *first, const char *second, sherd_diag *d)
{
    char paths[2][64];
    void *library = NULL;
    const char *const names[] = { in_folder(first, paths[0]), in_folder(second, paths[1]), NULL };
    *d = (sherd_diag){ .code = 0 };
    int err = sherd__driver_library(&library, file, names, "The driver", "install it", d);
    assert_null(library);
    if (!strstr(d->message, "The driver cannot be loaded: ")) fail_msg("%s", d->message);
    assert_string_equal(d->hint, "install it");
    return err;
}

static void a_missing_library_is_named_as_the_first_that_was_looked_for(void **s)
{
    (void)s;
    sherd_diag d;
    assert_int_equal(load(NULL, "one.so", "two.so", &d), SHERD_EUNSUPPORTED);
    assert_non_null(strstr(d.message, "/one.so: cannot open shared object file"));
    assert_int_equal(load("/nothing", "one.so", "two.so", &d), SHERD_EUNSUPPORTED);
    assert_non_null(strstr(d.message, "/nothing: cannot open shared object file"));
}

static void a_library_that_is_there_and_cannot_be_loaded_is_a_failure(void **s)
{
    (void)s;
    sherd_diag d;
    assert_int_equal(load(NULL, "one.so", "broken.so", &d), SHERD_EDEVICE);
    assert_non_null(strstr(d.message, "/broken.so: "));
    assert_int_equal(load(NULL, "broken.so", "one.so", &d), SHERD_EDEVICE);
    assert_non_null(strstr(d.message, "/broken.so: "));
}

static void the_next_library_is_loaded_where_one_cannot_be(void **s)
{
    char broken[64];
    void *library = NULL;
    sherd_diag d = { .code = 0 };
    const char *const names[] = { in_folder("broken.so", broken), "libm.so.6", NULL };
    (void)s;
    assert_int_equal(sherd__driver_library(&library, NULL, names, "it", NULL, &d), SHERD_OK);
    assert_non_null(library);
    assert_int_equal(d.code, 0);
    dlclose(library);
}

/* As another user, where this one may open everything. */
static int check_files(const char *name, sherd_diag *d)
{
    const char *const names[] = { "none", "open", name, NULL };
    const bool all = geteuid() == 0;
    *d = (sherd_diag){ .code = 0 };
    if (all && seteuid(65534)) skip();
    int err = sherd__driver_files(folder, names, d);
    assert_int_equal(all && seteuid(0), 0);
    return err;
}

static void a_file_that_this_user_may_not_open_is_named_with_its_group(void **s)
{
    (void)s;
    sherd_diag d;
    struct stat is;
    char path[64], words[128];
    assert_int_equal(stat(in_folder("group", path), &is), 0);
    assert_int_equal(check_files("none", &d), SHERD_OK);
    assert_int_equal(check_files("group", &d), SHERD_EDEVICE);
    snprintf(words, sizeof words, "this user may not read and write %s", path);
    assert_string_equal(d.message, words);
    snprintf(words, sizeof words, " (%u), to which the file belongs", (unsigned)is.st_gid);
    if (!strstr(d.hint, "add this user to the group ") || !strstr(d.hint, words))
        fail_msg("%s", d.hint);
    assert_int_equal(check_files("owner", &d), SHERD_EDEVICE);
    assert_non_null(strstr(d.hint, "let the file be read and written by its group "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_library_is_named_as_the_first_that_was_looked_for),
        cmocka_unit_test(a_library_that_is_there_and_cannot_be_loaded_is_a_failure),
        cmocka_unit_test(the_next_library_is_loaded_where_one_cannot_be),
        cmocka_unit_test(a_file_that_this_user_may_not_open_is_named_with_its_group),
    };
    return cmocka_run_group_tests_name("node/driver_library", tests, make_files, remove_files);
}
