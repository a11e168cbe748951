/*
 * Errors. Every function that can fail returns 0 or a negative SHERD_E* code. Functions that handle
 * files, peers or users also fill a sherd_diag with one sentence (what was found, what was
 * expected, where) and a hint (what to do about it).
 */
#ifndef SHERD_ERR_H
#define SHERD_ERR_H

#define SHERD_API __attribute__((visibility("default")))
#define SHERD_MUST __attribute__((warn_unused_result))

#ifdef __cplusplus
extern "C" {
#endif

/*
 * XX(number, NAME, exit code of the command, text). Numbers are grouped by blame: above -100 this
 * machine or its user, -1xx the peer, -2xx the network, -3xx the device, -4xx files.
 */
#define SHERD_ERR_MAP(XX)                                                                          \
    XX(-1, ENOMEM, 1, "out of memory")                                                             \
    XX(-2, EINVAL, 2, "invalid argument")                                                          \
    XX(-3, ERANGE, 11, "value outside the range that can be computed exactly")                     \
    XX(-4, EINTERNAL, 1, "internal error")                                                         \
    XX(-5, EINTERRUPTED, 130, "interrupted")                                                       \
    XX(-6, ETIMEOUT, 124, "timed out")                                                             \
    XX(-7, EFEWNODES, 7, "too few live nodes or domains, or too small ones")                       \
    XX(-8, EEXPOSURE, 10, "an exposure or reuse bound forbids it")                                 \
    XX(-9, EDIFFERS, 9, "differs from the centralized result")                                     \
    XX(-10, EUNSUPPORTED, 2, "not supported")                                                      \
    XX(-11, EBUSY, 1, "busy, try again later")                                                     \
    XX(-12, ESTOPPED, 13, "stopped, can be resumed")                                               \
    XX(-100, EFRAME, 5, "peer sent a malformed record")                                            \
    XX(-101, EAUTH, 6, "peer failed authentication")                                               \
    XX(-102, EWRONG, 8, "peer returned a result that fails verification")                          \
    XX(-103, EREFUSED, 7, "peer refused")                                                          \
    XX(-104, EVERSION, 14, "peer speaks another version")                                          \
    XX(-105, EUNASKED, 5, "peer sent something that was not asked for")                            \
    XX(-106, ESILENT, 5, "peer was silent for too long")                                           \
    XX(-200, ECLOSED, 5, "connection closed")                                                      \
    XX(-201, ECONNECT, 5, "cannot connect")                                                        \
    XX(-202, EADDRINUSE, 5, "address already in use")                                              \
    XX(-203, ENET, 5, "network error")                                                             \
    XX(-300, EDEVICE, 1, "device failed or failed its self-test")                                  \
    XX(-400, EOPEN, 4, "cannot open file")                                                         \
    XX(-401, EIO, 4, "cannot read or write file")                                                  \
    XX(-402, EFORMAT, 3, "malformed file")                                                         \
    XX(-403, ESHAPE, 3, "shapes do not agree")                                                     \
    XX(-404, EKEY, 6, "bad or unreadable key")                                                     \
    XX(-405, ECHAIN, 12, "checkpoint chain broken")

enum {
    SHERD_OK = 0,
#define XX(num, name, exit, text) SHERD_##name = (num),
    SHERD_ERR_MAP(XX)
#undef XX
};

/** The party that has to change for an error to go away. A scheduler acts on this class. */
typedef enum sherd_err_blame {
    SHERD_BLAME_NONE,
    SHERD_BLAME_LOCAL,
    SHERD_BLAME_PEER,
    SHERD_BLAME_NET,
    SHERD_BLAME_DEVICE,
    SHERD_BLAME_STORE
} sherd_err_blame;

/** One failure, reported to a person. Plain data, which never grows; message and hint are always
 *  terminated. The caller zeroes it before each call: a call records the first failure only, and
 *  leaves a struct that contains one unchanged. */
typedef struct sherd_diag {
    int code;          /* SHERD_E*; 0 if nothing has failed */
    char message[480]; /* one sentence: what, where, found and expected */
    char hint[240];    /* the remedy, or empty */
} sherd_diag;

SHERD_API const char *sherd_strerror(int err);
/** Returns "ENOMEM" for SHERD_ENOMEM; "EUNKNOWN" for a number that is not a SHERD_E* code. */
SHERD_API const char *sherd_err_name(int err);
SHERD_API sherd_err_blame sherd_err_class(int err);
/** Returns the command's exit code for an error (sherd(1), EXIT STATUS). */
SHERD_API int sherd_err_exit(int err);

#ifdef __cplusplus
}
#endif

#endif
