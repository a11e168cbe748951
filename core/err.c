/* The text, name and exit code of each error number, and diagnostics for users. */
#include "sherd/err.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/diag.h"

const char *sherd_strerror(int err)
{
    switch (err) {
    case SHERD_OK: return "success";
#define XX(num, name, exit, text)                                                                  \
    case SHERD_##name: return text;
        SHERD_ERR_MAP(XX)
#undef XX
    default: return "unknown error";
    }
}

const char *sherd_err_name(int err)
{
    switch (err) {
    case SHERD_OK: return "OK";
#define XX(num, name, exit, text)                                                                  \
    case SHERD_##name: return #name;
        SHERD_ERR_MAP(XX)
#undef XX
    default: return "EUNKNOWN";
    }
}

int sherd_err_exit(int err)
{
    switch (err) {
    case SHERD_OK: return 0;
#define XX(num, name, exit, text)                                                                  \
    case SHERD_##name: return exit;
        SHERD_ERR_MAP(XX)
#undef XX
    default: return 1;
    }
}

sherd_err_blame sherd_err_class(int err)
{
    if (err >= 0) return SHERD_BLAME_NONE;
    if (err > -100) return SHERD_BLAME_LOCAL;
    if (err > -200) return SHERD_BLAME_PEER;
    if (err > -300) return SHERD_BLAME_NET;
    if (err > -400) return SHERD_BLAME_DEVICE;
    return SHERD_BLAME_STORE;
}

__attribute__((format(printf, 5, 0))) static void record(sherd_diag *d, int code, const char *hint,
                                                         const char *what, const char *fmt,
                                                         va_list ap)
{
    if (!d || d->code != SHERD_OK) return;
    int len = snprintf(d->message, sizeof d->message, "%s", what);
    d->code = code;
    vsnprintf(d->message + len, sizeof d->message - (size_t)len, fmt, ap);
    snprintf(d->hint, sizeof d->hint, "%s", hint ? hint : "");
}

int sherd__fail(sherd_diag *d, int code, const char *hint, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    record(d, code, hint, "", fmt, ap);
    va_end(ap);
    return code;
}

int sherd__fail_memory(sherd_diag *d, const char *use, ...)
{
    va_list ap;
    va_start(ap, use);
    record(d, SHERD_ENOMEM, "free memory, or raise the limit of this process or its container",
           "out of memory for ", use, ap);
    va_end(ap);
    return SHERD_ENOMEM;
}

int sherd__fail_memory_hint(sherd_diag *d, const char *hint, const char *use, ...)
{
    va_list ap;
    va_start(ap, use);
    record(d, SHERD_ENOMEM, hint, "out of memory for ", use, ap);
    va_end(ap);
    return SHERD_ENOMEM;
}

int sherd__fail_to(sherd_diag *d, int err, const char *what)
{
    return sherd__fail(d, err, NULL, "cannot %s: %s", what, sherd_strerror(err));
}

const char *sherd__bytes_text(double bytes, char out[16])
{
    static const char *const units[] = { "bytes", "KB", "MB", "GB", "TB", "PB" };
    size_t u = 0;
    for (; bytes >= 999.5 && u + 1 < sizeof units / sizeof *units; u++) bytes /= 1000;
    snprintf(out, 16, u > 0 && bytes < 9.95 ? "%.1f %s" : "%.0f %s", bytes, units[u]);
    return out;
}
