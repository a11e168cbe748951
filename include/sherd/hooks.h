/*
 * Hooks: how a long call reports progress and messages, and how it is interrupted. An option struct
 * contains one sherd_hooks; all its members may be NULL. The hooks are called on the thread that
 * made the call, never at the same time as each other, and may not call the object that the call
 * works on, unless its header allows it.
 *
 * sherd_hooks has no size and never grows, because other structs contain it: members that it would
 * push back would change their place. A call that needs another hook has it in its own options.
 */
#ifndef SHERD_HOOKS_H
#define SHERD_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sherd_log_level { SHERD_LOG_DEBUG, SHERD_LOG_INFO, SHERD_LOG_WARN } sherd_log_level;

/** Made by the library, which may add members at the end. */
typedef struct sherd_progress {
    uint64_t done, total; /* of a product, tasks: one per node, row panel and column tile; otherwise
                             what the call's declaration says */
    uint64_t bytes_out, bytes_in;
    uint32_t nodes_up;
    double seconds; /* since the call began */
} sherd_progress;

typedef struct sherd_hooks {
    /** Called at least ten times a second; returning true ends the call with SHERD_EINTERRUPTED. */
    bool (*interrupted)(void *ctx);
    /** Receives messages for people. The text is valid during the call of the hook only. */
    void (*log)(void *ctx, sherd_log_level level, const char *text);
    /** Called at most ten times a second, and once at the end. */
    void (*progress)(void *ctx, const sherd_progress *p);
    void *ctx;
} sherd_hooks;

#ifdef __cplusplus
}
#endif

#endif
