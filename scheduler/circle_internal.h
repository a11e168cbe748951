/* What a circle's leader (circle_job.c), its meetings (circle_meet.c), its rounds (circle_round.c)
 * and what sends for it (circle_send.c, circle_rows.c), what it fetches (circle_fetch.c) and what
 * watches sums (circle_watch.c) share. Nobody else includes this. */
#ifndef SCHEDULER_CIRCLE_INTERNAL_H
#define SCHEDULER_CIRCLE_INTERNAL_H


#include "learn/circle_plan.h"
#include "learn/member.h"
#include "scheduler/circle_job.h"
#include "scheduler/mail.h"
#include "scheduler/work_state.h"

typedef enum phase { HEARING, MEETING, CONNECTING, IDLE, STEPPING, FETCHING } phase;

/* Examples that a member is not to keep. */
typedef struct circle_pack {
    uint32_t pack, *rows;
    size_t len;
} circle_pack;

typedef struct member {
    sherd__work_node w;      /* first */
    bool out;                /* takes no part, or no more */
    bool known;              /* it has been up */
    bool loaded;             /* it has the state */
    bool stood;              /* it was of a circle that stood */
    bool in;                 /* of the circle, as number `self` */
    uint32_t self;
    uint32_t asked;          /* tasks that are open */
    bool has_text;
    uint32_t state;          /* block of it, until the node has read it; 0: none */
    uint32_t next_block;
    uint8_t *has;            /* a bit for each example: it was sent */
    uint64_t kept;           /* bytes of those that it keeps */
    uint32_t packs;          /* sent in this session */
    circle_pack *spent;      /* to be dropped after the round */
    uint32_t spent_len;
    uint32_t from, to;       /* its shards, as numbers in the job's list */
    bool graded, summed;     /* in this round */
    bool told, moved;        /* since members were last asked where they are */
    sherd__circle_where where;
    uint32_t suspect;        /* with whom it held up a sum: its node + 1; 0: none */
    uint8_t hash[SHERD__HASH]; /* of its state, as it says */
    int64_t links[SHERD__CIRCLE_MOST];
    uint64_t figures[SHERD__RECIPE_LAYERS_MAX + SHERD__CIRCLE_FIGURES];
} member;

struct sherd__circle_job {
    sherd__work_state w;     /* first */
    sherd__circle_job_options o;
    char *text;
    member *nodes;
    uint32_t node_of[SHERD__CIRCLE_MOST];
    uint32_t members;
    size_t examples;
    phase phase;
    uint64_t meetings;
    uint64_t id;             /* of the circle as it last met */
    uint64_t link_out, link_in; /* bytes on links of meetings before */
    bool stood;              /* once at least */
    bool broken;             /* it has to meet before anything else */
    bool anew;               /* broken off since a round was complete: no node comes in before one
                                is, or one that comes and goes would hold up all */
    uint32_t order;          /* in which members are numbered; 0: as nodes are, else shuffled */
    uint32_t tasks;          /* numbers given */
    uint64_t now_ms;
    uint64_t round, commit;  /* the last that was begun; the last that is complete */
    double rate;             /* of its update */
    uint32_t failed;         /* rounds, since one was complete */
    uint64_t graded_ms;      /* when the last member of this round had graded */
    uint64_t moved_ms;       /* a sum: when it was last known to move */
    uint64_t asked_ms;       /* since when members are asked; 0: they are not */
    uint32_t looks;
    double *fetch;           /* where a state goes that is fetched */
    sherd__version *stock;   /* one for nodes that came; o.state, once all agree on it */
    size_t fetch_len;
    double usual_ms;         /* moving average from there to its end; 0: not known */
    sherd__circle_ask *ask;  /* under way */
    uint32_t *shards;        /* that count in this round, ascending */
    uint32_t shards_len;
    sherd__mail mail;   /* asked: a sherd__circle_ask */
    sherd__circle_stats stats; /* under its lock */
};

/* circle_send.c: blocks and task of one question to one member. SHERD_EINVAL where its session
 * takes none, which is about to end then; SHERD_ENOMEM. */

int sherd__circle_send_meet(sherd__circle_job *j, uint32_t node, const char *roster,
                            size_t len) SHERD_MUST;
int sherd__circle_send_connect(sherd__circle_job *j, uint32_t node) SHERD_MUST;
/** STEP and REDUCE; `by` is what the sum is divided by. */
int sherd__circle_send_step(sherd__circle_job *j, uint32_t node, double by) SHERD_MUST;
/** The first `len` numbers of its state, or a hash of them. */
int sherd__circle_send_state(sherd__circle_job *j, uint32_t node, size_t len,
                             bool hash) SHERD_MUST;
int sherd__circle_send_where(sherd__circle_job *j, uint32_t node) SHERD_MUST;

/* circle_rows.c */

/** Those of these rows that the member has not got. Errors as above. */
int sherd__circle_send_rows(sherd__circle_job *j, uint32_t node, const uint32_t *rows,
                            size_t len) SHERD_MUST;
/** The round is over: the node drops examples that it was not to keep. */
void sherd__circle_send_drops(sherd__circle_job *j, uint32_t node);
/** Its session is gone, and what it had with it. */
void sherd__circle_forget_rows(sherd__circle_job *j, uint32_t node);

/* circle_fetch.c */

/** What was asked for; answered when it is there. */
void sherd__circle_begin_fetch(sherd__circle_job *j);
/** For nodes that are to come in: a meeting follows. */
void sherd__circle_begin_stock(sherd__circle_job *j);
void sherd__circle_take_state(sherd__circle_job *j, member *m, const sherd__event *e);
/** Every member has answered. */
void sherd__circle_end_fetch(sherd__circle_job *j);

/* circle_watch.c */

/** All have graded: from now on their sum is watched. */
void sherd__circle_watch_round(sherd__circle_job *j);
void sherd__circle_take_where(sherd__circle_job *j, member *m, const uint8_t *bytes);
/** Ten times a second. */
void sherd__circle_watch(sherd__circle_job *j);
/** Patience with a sum is at its end. True: somebody was found at fault, and the round is made anew
 *  without. */
bool sherd__circle_overdue(sherd__circle_job *j);

/* circle_job.c */

/** What came of sending. */
void sherd__circle_sent(sherd__circle_job *j, uint32_t node, int err);
/** Nothing that is under way is wanted: from no member. */
void sherd__circle_call_off(sherd__circle_job *j);
/** It takes no part any more, and does not know it: `why` is told. */
void sherd__circle_leave_out(sherd__circle_job *j, uint32_t node, const char *why);
/** What was asked for is over, with this error. */
void sherd__circle_answer(sherd__circle_job *j, int err, const char *why);

/* circle_meet.c */

/** Puts n things in this order. */
void sherd__circle_shuffle(uint32_t order, uint32_t *things, uint32_t n);
void sherd__circle_begin_meet(sherd__circle_job *j);
void sherd__circle_begin_connect(sherd__circle_job *j);
/** All have told which links they have: the circle stands, or somebody is left out. */
void sherd__circle_judge_links(sherd__circle_job *j);

/* circle_round.c */

void sherd__circle_begin_step(sherd__circle_job *j);
/** False: numbers that are none. */
bool sherd__circle_take_costs(sherd__circle_job *j, member *m, const uint8_t *bytes) SHERD_MUST;
void sherd__circle_take_figures(sherd__circle_job *j, member *m, const uint8_t *bytes);
/** Every member has summed. */
void sherd__circle_end_step(sherd__circle_job *j);
/** The round cannot be ended as it was begun; what was asked for is made anew after a meeting. */
void sherd__circle_break(sherd__circle_job *j, const char *why);
/** The same for members that are gone: what was broken off before may have been theirs, too, and
 *  does not count any more. */
void sherd__circle_break_without(sherd__circle_job *j, const char *why);

#endif
