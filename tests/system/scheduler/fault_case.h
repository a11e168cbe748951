/*
 * A product that meets a fault, run and judged in a process of the caller's; nothing here asserts.
 * What it is judged by, the caller makes first: operands, seed and key in fault_top, undisturbed
 * products, and real nodes to be reached through a proxy.
 */
#ifndef TESTS_SYSTEM_SCHEDULER_FAULT_CASE_H
#define TESTS_SYSTEM_SCHEDULER_FAULT_CASE_H

#include "command.h"

#define FAULT_LOCAL 7 /* nodes, where they are killed and stopped */
#define FAULT_FEW 4   /* elsewhere */

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

/** How products are made; the undisturbed one of each is the reference. */
enum { EXACT, PLAIN, FLOAT, SHARE, WAYS };

typedef struct fault_case {
    fault_kind kind;
    unsigned index; /* of its kind: which instant, which way */
    uint64_t draw[4];
    pid_t pid;
    /* Filled in by the case's process; text: what is wrong. */
    bool ok, struck;
    int64_t took_ms;
    char text[900];
} fault_case;

/** An undisturbed product. */
typedef struct calm {
    char file[200];
    uint64_t sent, received; /* one node's bytes */
    uint32_t panels;
} calm;

/** The folder: A.npy, B.npy, seed, me.key, and a folder for each case. */
extern char fault_top[128];
extern calm fault_calm[2][WAYS];           /* with FAULT_LOCAL nodes, with FAULT_FEW */
extern char fault_shared[FAULT_FEW][1024]; /* lines of the nodes behind the proxy */

/** Runs one case to its end. */
void fault_run(fault_case *f);

typedef struct fault_command {
    command c;
    char dir[160], out[200], record[200];
} fault_command;

/** Starts the product of a case: of `nodes` local nodes, or those of a file. */
void fault_begin(fault_command *r, const fault_case *f, const char *program, int way,
                 unsigned nodes, const char *nodes_file, bool record, const char *env);
/** Something is wrong with the case; the command's end is part of it. */
void fault_say(fault_case *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fault_say_end(fault_case *f, const fault_command *r);
/** Of a result's JSON. */
json_t *fault_node(json_t *root, const char *name);
json_int_t fault_count(json_t *root, const char *field);

#endif
