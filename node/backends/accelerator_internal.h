/* The state of a backend for devices with memory of their own: its devices, lanes and blocks
 * (accelerator.c), a lane's use of its driver (accelerator_lane.c), memory (accelerator_memory.c),
 * how devices are chosen and opened (accelerator_open.c), how a task is computed by kernels
 * (accelerator_task.c) or a library (accelerator_library.c), in parts where memory is short
 * (accelerator_parts.c), the self-test (accelerator_selftest.c), which also decides between kernels
 * and library (accelerator_choice.c), and measurements for people (accelerator_peaks.c,
 * accelerator_busy.c). */
#ifndef NODE_BACKENDS_ACCELERATOR_INTERNAL_H
#define NODE_BACKENDS_ACCELERATOR_INTERNAL_H

#include <pthread.h>

#include "core/team.h"
#include "node/backends/accelerator.h"

#define ACCELERATOR_FLOPS 2e10 /* operations of a launch, and in progress on a lane */
#define ACCELERATOR_LANES 2u
#define ACCELERATOR_KEPT 16u /* pieces of memory that a device keeps */

typedef struct accelerator accelerator;
typedef struct accelerator_device accelerator_device;

/* A device that was opened. */
typedef struct sherd__driver_device {
    void *of;         /* the driver's */
    char model[32];   /* GPU model */
    uint32_t units;   /* compute units */
    uint64_t memory;  /* bytes that the backend may use */
    uint64_t largest; /* bytes of one allocation */
    bool f64;         /* it has float64 */
} sherd__driver_device;

/** Starts a backend over these devices, at most SHERD__DEVICES_MAX, and takes them: they are closed
 *  with it, or on failure. */
int sherd__accelerator_start(void **ctx, const sherd__driver *driver,
                             const sherd__driver_device *devices, uint32_t count,
                             const sherd__backend_options *opt, sherd_diag *d) SHERD_MUST;

/* A block that is held, or that was dropped while a call still uses it. */
typedef struct accelerator_block {
    const sherd__fragment *from;
    accelerator_device *on;
    uint64_t owner, len;
    void *memory; /* NULL: not copied yet */
    enum { TO_COPY, BEING_COPIED, COPIED } state;
    uint32_t calls;
    bool dropped;
    struct accelerator_block *next; /* of those that wait to be overwritten */
} accelerator_block;

/* Kinds of products. */
typedef enum accelerator_kind { KIND_F64, KIND_RESIDUES, KIND_BYTES, KINDS } accelerator_kind;

/* The library that multiplies on a device. */
typedef struct accelerator_library {
    char name[SHERD__LIBRARY_NAME];
    bool used; /* all lanes have it */
    double
        from[KINDS]; /* operations of a product from which on it computes; INFINITY: it does not */
    double rate[KINDS]; /* operations a second, as measured */
} accelerator_library;

typedef struct accelerator_lane {
    accelerator_device *on;
    void *driver;
    void *bad;            /* a word of the device */
    uint8_t *staging;     /* through which everything is copied */
    size_t used;          /* bytes of it that were used since it was overwritten */
    sherd__team *copiers; /* fill and empty it; NULL: the lane's thread does */
    pthread_t thread;
    bool runs;
    bool ended;                    /* its thread returns */
    void *workspace;               /* of the library; NULL: the lane has none */
    uint64_t products;             /* that the library has computed */
    bool computes;                 /* kernels were started and not waited for */
    double turned;                 /* when that changed, by sherd__clock_s */
    double computing_s, copying_s; /* time in which kernels were awaited, and in copies */
    char refused[SHERD__TEXT_MAX]; /* why it did not compute the last one that it did not */
    sherd__call *call;             /* in progress */
    double deadline;               /* of what it does, by sherd__clock_s; 0: it waits */
    /* Held by the lane's thread during a call, except within functions of the driver, and needed to
     * set `hung`: so an abandoned lane is within the driver, and uses nothing of its call. */
    pthread_mutex_t busy;
    bool hung; /* abandoned: its thread never returns from the driver */
} accelerator_lane;

/* Memory that nothing uses. */
typedef struct accelerator_kept {
    void *memory;
    uint64_t len; /* as it was allocated */
} accelerator_kept;

struct accelerator_device {
    accelerator *of;
    sherd__driver_device driver;
    sherd__device *what;
    accelerator_lane lanes[ACCELERATOR_LANES];
    accelerator_library library;
    sherd__call *first, *last;               /* calls that wait for a lane */
    accelerator_block *released;             /* memory to be overwritten and freed */
    uint32_t freeing;                        /* such blocks that lanes overwrite now */
    uint64_t used;                           /* bytes of the budget */
    accelerator_kept kept[ACCELERATOR_KEPT]; /* the oldest first */
    uint32_t kept_len;
    uint64_t kept_bytes, evictions;
    double kept_at;           /* when the last one was added */
    pthread_mutex_t evicting; /* held while kept memory is freed, outside `lock` */
    uint32_t calls;           /* waiting and in progress */
    uint32_t computing;       /* lanes whose kernels run */
    double computing_from;    /* when the first of them began */
    double busy_s;            /* time in which any lane's kernels ran, until none did */
    bool lost;
    bool stuck; /* a lane was abandoned */
    char why[SHERD__TEXT_MAX];
};

struct accelerator {
    const sherd__driver *driver;
    sherd__device list[SHERD__DEVICES_MAX];
    accelerator_device devices[SHERD__DEVICES_MAX];
    uint32_t count;
    double timeout_s;
    pthread_t watchdog;
    bool watched;
    bool ending;              /* lanes end once they have nothing to do */
    bool watch_ending;        /* they have ended, or were abandoned */
    uint64_t ended;           /* calls */
    pthread_mutex_t settling; /* held while the share of a seed is computed */
    /* Protects everything above but the contents of lanes that are not shared. */
    pthread_mutex_t lock;
    pthread_cond_t work, changed;
};

/* A call on its lane. */
typedef struct accelerator_run {
    accelerator_lane *lane;
    const sherd__call *call;
    const sherd__task *task;
    accelerator_block *left, *right;
    uint8_t *result; /* where the result goes; NULL: nowhere */
    void *out;       /* the result on the device */
    void *scratch;   /* memory that a library's products need */
    uint64_t scratch_len;
    double load; /* started since the lane was waited for; 1: as much as may be */
} accelerator_run;

/** Runs a call's program on a lane. Errors: those of sherd__accelerator_compute, those of the
 *  program's call, and SHERD_ERANGE for a number that is not finite. */
int sherd__accelerator_run(accelerator_lane *l, const sherd__call *c, sherd_diag *d);
/** Sets job->row and the groups of a kernel with an item for each of job->n numbers. */
void sherd__accelerator_grid(sherd__kernel_job *job, uint32_t groups[2]);
/** Starts such a kernel over the operands and the result of a call. */
int sherd__accelerator_each(accelerator_run *r, sherd__kernel kernel, const sherd__kernel_job *job,
                            sherd_diag *d);
/** Computes a product, by the library if that is faster. What it does not compute, kernels do. */
int sherd__accelerator_multiply(accelerator_run *r, accelerator_kind kind, sherd__kernel_job *job,
                                sherd_diag *d);
/** Waits for the launches; returns SHERD_ERANGE with this message where one found a value out of
 *  range. */
int sherd__accelerator_checked(accelerator_run *r, const char *why, sherd_diag *d);
/** Sets the deadline of a lane's call to the time that this much work may take from now on. */
void sherd__accelerator_renew(accelerator_lane *l, double flops);
/** Before work is started: ends a call that was cancelled, and waits for the lane where it would
 *  have more to do than it may. */
int sherd__accelerator_pace(accelerator_run *r, double load, sherd_diag *d);
/** Computes the product that a kernel's job describes by the library. SHERD_EUNSUPPORTED or
 *  SHERD_ENOMEM: the library does not compute it, or there is no memory for that; the result's
 *  memory then has any numbers, and kernels can compute it. */
int sherd__accelerator_library_multiply(accelerator_run *r, accelerator_kind kind,
                                        const sherd__kernel_job *job, sherd_diag *d);
/** Returns the memory that products have taken. */
void sherd__accelerator_library_end(accelerator_run *r);
/** Returns what a lane has of the library. */
void sherd__accelerator_library_close(accelerator_lane *l);

/** Computes a call's task on a lane, from its blocks into c->out. Errors: those of
 *  sherd__backend.submit, and SHERD_ECLOSED where the device is lost or the lane was abandoned. */
int sherd__accelerator_compute(accelerator_lane *l, sherd__call *c, accelerator_block *left,
                               accelerator_block *right, sherd_diag *d);
/** Computes the task of a run, which was checked, into its `result`. */
int sherd__accelerator_whole(accelerator_run *r, sherd_diag *d);
/** The same where the device may have too little memory: then in parts, into which blocks are cut
 *  on the host. SHERD_ENOMEM: it has none even for a small part. */
int sherd__accelerator_in_parts(accelerator_run *r, sherd_diag *d);
/** Copies the block to its device, unless that was done. */
int sherd__accelerator_copy(accelerator_lane *l, accelerator_block *b, sherd_diag *d);

/* Memory of a device. What is returned is overwritten, and kept for the next allocation of the same
 * size: allocating and freeing wait for all lanes. It is freed where its room is needed. */

/** Takes bytes of the device's budget; returns SHERD_ENOMEM where they exceed it. Kept memory does
 *  not count. */
int sherd__accelerator_reserve(accelerator_device *v, uint64_t len, sherd_diag *d);
/** The same while the lock is held. */
int sherd__accelerator_take(accelerator_device *v, uint64_t len, sherd_diag *d);
void sherd__accelerator_unreserve(accelerator_device *v, uint64_t len);
/** Sets *out to memory of the device, which must have been reserved. Its contents are undefined. */
int sherd__lane_memory(accelerator_lane *l, uint64_t len, void **out, sherd_diag *d);
/** Overwrites memory of this length and returns it. */
void sherd__accelerator_forget(accelerator_lane *l, void *memory, uint64_t len);
/** Overwrites and frees what was released, and returns whether there was any; that of a lost device
 *  is freed with the device. The lock is held, but not while the driver runs. */
bool sherd__accelerator_free_released(accelerator_lane *l);
/** Frees kept memory, the oldest first, until at most this many bytes are kept. */
void sherd__accelerator_evict(accelerator_lane *l, uint64_t most);

/* The driver's functions of a lane, called by its thread, which holds `busy`. */

/** Around functions of the driver, and waits for other lanes. An abandoned lane stays here. */
void sherd__lane_enter(accelerator_lane *l);
void sherd__lane_leave(accelerator_lane *l);
static inline const sherd__driver *sherd__lane_driver(const accelerator_lane *l)
{
    return l->on->of->driver;
}
/** Return once the copy is complete. Errors: those of the driver, and SHERD_EINTERRUPTED where the
 *  lane's call was cancelled meanwhile. */
int sherd__lane_write(accelerator_lane *l, void *memory, uint64_t at, const uint8_t *from,
                      uint64_t len, sherd_diag *d);
int sherd__lane_read(accelerator_lane *l, void *memory, uint64_t at, uint8_t *to, uint64_t len,
                     sherd_diag *d);
/** Overwrites the memory that copies have gone through. */
void sherd__lane_wipe(accelerator_lane *l);
int sherd__lane_zero(accelerator_lane *l, void *memory, uint64_t len, sherd_diag *d);
int sherd__lane_launch(accelerator_lane *l, sherd__kernel kernel, const sherd__kernel_memory *m,
                       const sherd__kernel_job *job, const uint32_t groups[2], sherd_diag *d);
int sherd__lane_finish(accelerator_lane *l, sherd_diag *d);
int sherd__lane_product(accelerator_lane *l, const sherd__library_product *p, sherd_diag *d);
/** Returns SHERD_EINTERRUPTED where the lane's call was cancelled. */
int sherd__lane_check_cancelled(const accelerator_lane *l, sherd_diag *d);
/** Opens a lane; close it also after a failure. threads: of the node; 0: all processors. */
int sherd__lane_open(accelerator_lane *l, accelerator_device *v, uint32_t threads, sherd_diag *d);
void sherd__lane_close(accelerator_lane *l);

/** Measures the device of an idle backend while its lanes work: how long it computes, and how long
 *  they copy. */
int sherd__accelerator_measure_busy(accelerator *a, const sherd__backend_options *opt,
                                    sherd_diag *d);
/** Returns the bytes of a device's memory that the self-test below needs. f64: the device has
 *  float64. */
uint64_t sherd__accelerator_needs(bool f64);
/** Tests a device before its lanes run, and sets what it does and its rates. */
int sherd__accelerator_selftest(accelerator_device *v, const sherd__backend_options *opt,
                                sherd_diag *d);

#endif
