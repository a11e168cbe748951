/*
 * A product with a fault, run and judged in a process of its own; nothing here asserts. The caller
 * first makes what it is compared with: operands, seed and key in fault_top, undisturbed products,
 * and real nodes that are reached through a proxy.
 */
#ifndef TESTS_SYSTEM_SCHEDULER_FAULT_CASE_H
#define TESTS_SYSTEM_SCHEDULER_FAULT_CASE_H

#include "command.h"

#define FAULT_LOCAL 7 /* number of nodes where most of them or all are killed or stopped */
#define FAULT_FEW 4   /* number of nodes otherwise */

typedef enum fault_kind {
    KILL,
    STOP,
    RESET,
    HALF,
    STALL,
    GARBAGE,
    WRONGLEN,
    WRONG,
    TWICE,
    UNASKED,
    SLOW,
    SILENT,
    STRICT,
    BOUND,
    ALL,
    KINDS
} fault_kind;
extern const char *const fault_names[KINDS];

/** The kinds of products; the undisturbed product of each is the reference. */
enum { EXACT, PLAIN, FLOAT, SHARE, WAYS };

typedef struct fault_case {
    fault_kind kind;
    unsigned index; /* number within its kind, which determines the instant and the way */
    uint64_t draw[4];
    pid_t pid;
    /* Filled in by the process of the case; text: what is wrong. */
    bool ok, struck;
    int64_t took_ms;
    char text[900];
} fault_case;

/** An undisturbed product. */
typedef struct calm {
    char file[200];
    uint64_t sent, received; /* bytes of one node */
    uint32_t panels;
} calm;

/** The folder: A.npy, B.npy, seed, me.key, and a folder for each case. */
extern char fault_top[128];
extern calm fault_calm[WAYS];              /* with FAULT_FEW nodes */
extern char fault_shared[FAULT_FEW][1024]; /* lines of the nodes behind the proxy */

/** Runs one case to its end. */
void fault_run(fault_case *f);

typedef struct fault_command {
    command c;
    int64_t reported_ms; /* when a node was first named as lost or banned; 0: not so far */
    char dir[160], out[200], record[200];
} fault_command;

/** Starts the product of a case, on `nodes` local nodes or those of a file. */
void fault_begin(fault_command *r, const fault_case *f, const char *program, int way,
                 unsigned nodes, const char *nodes_file, bool record, const char *env);
/** Records that something is wrong with the case; fault_say_end adds how the command ended. */
void fault_say(fault_case *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fault_say_end(fault_case *f, const fault_command *r);
/** Reads the JSON of a result. */
json_t *fault_node(json_t *root, const char *name);
json_int_t fault_count(json_t *root, const char *field);

#endif
