/* What a circle's leader (job.c), its meetings (circle_meet.c), its rounds (round.c)
 * and what sends for it (send.c, rows.c), what it fetches (fetch.c), what
 * watches sums (watch.c) and members (still.c), what refusals mean (refuse.c,
 * doubt.c) and who is at fault (dispute.c) share. No other file includes this. */
#ifndef SCHEDULER_ALLREDUCE_INTERNAL_H
#define SCHEDULER_ALLREDUCE_INTERNAL_H

#include "learn/allreduce_plan.h"
#include "learn/member.h"
#include "scheduler/allreduce/job.h"
#include "scheduler/cluster/request_slot.h"
#include "scheduler/cluster/work_state.h"

#define CIRCLE_ANSWER_MS 30000.0 /* a session lives, and its member does not say where it is */
#define FAILED_MOST 3u /* rounds in a row that were broken off, until somebody is to look */

typedef enum phase { HEARING, MEETING, CONNECTING, IDLE, STEPPING, FETCHING } phase;

/* Examples that a member is not to keep. */
typedef struct circle_pack {
    uint32_t pack, *rows;
    size_t len;
} circle_pack;

typedef struct member {
    sherd__work_node w; /* first */
    bool out;           /* takes no part, or no more */
    bool known;         /* it has been up */
    bool loaded;        /* it has the state */
    bool stood;         /* it was of a circle that stood */
    bool in;            /* of the circle, as number `self` */
    uint32_t self;
    uint32_t asked; /* tasks that are open */
    bool has_text;
    uint32_t state; /* block of it, until the node has read it; 0: none */
    uint32_t next_block;
    uint8_t *has;       /* a bit for each example: it was sent */
    uint64_t kept;      /* bytes of those that it keeps */
    uint32_t packs;     /* sent in this session */
    circle_pack *spent; /* to be dropped after the round */
    uint32_t spent_len;
    uint32_t from, to;   /* its shards, as numbers in the job's list */
    bool graded, summed; /* in this round */
    bool refused;        /* its part of this round: it says that something does not fit */
    bool denied;         /* what the member that is doubted says: it has found otherwise */
    bool told, moved;    /* since members were last asked where they are */
    sherd__allreduce_where where;
    uint64_t asked_ms;         /* since when it owes an answer where it is; 0: it does not */
    uint64_t alive_ms;         /* when it last told that it computes */
    uint32_t looks;            /* since it was last known to */
    uint64_t disputes;         /* nodes, as bits: of it and them one is at fault */
    uint64_t breaks;           /* likewise, of links; since a round was complete */
    bool breaking;             /* it has refused a sum, and is to say whose link that is about */
    uint32_t put_off;          /* times */
    uint64_t again_ms;         /* not before then does it come in */
    uint8_t hash[SHERD__HASH]; /* of its state, as it says */
    int64_t links[SHERD__ALLREDUCE_MOST];
    sherd__allreduce_link_bytes links_now, links_before; /* as last told, under the stats' lock; in
                                                         meetings before this one */
    uint64_t figures[SHERD__RECIPE_LAYERS_MAX + SHERD__ALLREDUCE_FIGURES];
} member;

struct sherd__allreduce_job {
    sherd__work_state w; /* first */
    sherd__allreduce_job_options o;
    char *text;
    member *nodes;
    uint32_t node_of[SHERD__ALLREDUCE_MOST];
    uint32_t members;
    size_t examples;
    phase phase;
    uint64_t meetings;
    uint64_t id;    /* of the circle as it last met */
    bool stood;     /* once at least */
    bool broken;    /* it has to meet before anything else */
    bool anew;      /* broken off since a round was complete: no node comes in before one
                                is, or one that comes and goes would hold up all */
    uint32_t order; /* in which members are numbered; 0: as nodes are, else shuffled */
    uint32_t tasks; /* numbers given */
    uint64_t now_ms;
    uint64_t round, commit; /* the last that was started; the last that is complete */
    double rate;            /* of its update */
    uint32_t failed;        /* rounds, since one was complete */
    uint64_t graded_ms;     /* when the last member of this round had graded */
    uint64_t moved_ms;      /* a sum: when it was last known to move */
    uint64_t asked_ms;      /* a sum: since when members are asked; 0: they are not */
    uint64_t begun_ms;      /* when the phase began, for those that have no other clock */
    uint32_t looks;
    double *fetch;         /* where a state goes that is fetched */
    sherd__version *stock; /* one for nodes that came; o.state, once all agree on it */
    size_t fetch_len;
    double usual_ms;           /* moving average from there to its end; 0: not known */
    sherd__allreduce_ask *ask; /* under way */
    uint32_t turned;           /* by how many members shards are dealt further */
    uint32_t doubted;          /* the member (node + 1) that says alone that a step does not fit */
    uint32_t doubted_part;     /* which part of the deal that is about */
    int refused;               /* of whoever refused last; what it said */
    char why[SHERD__TEXT_MAX + 420];
    uint32_t *shards; /* that count in this round, ascending */
    uint32_t shards_len;
    sherd__request_slot mail;     /* asked: a sherd__allreduce_ask */
    sherd__allreduce_stats stats; /* under its lock */
};

/* send.c: blocks and task of one question to one member. SHERD_EINVAL where its session
 * takes none, which is about to end then; SHERD_ENOMEM. */

int sherd__allreduce_send_meet(sherd__allreduce_job *j, uint32_t node, const char *roster,
                               size_t len) SHERD_MUST;
int sherd__allreduce_send_connect(sherd__allreduce_job *j, uint32_t node) SHERD_MUST;
/** STEP and REDUCE; `by` is what the sum is divided by. */
int sherd__allreduce_send_step(sherd__allreduce_job *j, uint32_t node, double by) SHERD_MUST;
/** The first `len` numbers of its state, or a hash of them. */
int sherd__allreduce_send_state(sherd__allreduce_job *j, uint32_t node, size_t len,
                                bool hash) SHERD_MUST;
int sherd__allreduce_send_where(sherd__allreduce_job *j, uint32_t node) SHERD_MUST;

/* rows.c */

/** Those of these rows that the member has not got. Errors as above. */
int sherd__allreduce_send_rows(sherd__allreduce_job *j, uint32_t node, const uint32_t *rows,
                               size_t len) SHERD_MUST;
/** The round is over: the node drops examples that it was not to keep. */
void sherd__allreduce_send_drops(sherd__allreduce_job *j, uint32_t node);
/** Its session is gone, and what it had with it. */
void sherd__allreduce_forget_rows(sherd__allreduce_job *j, uint32_t node);

/* fetch.c */

/** What was asked for; answered when it is there. */
void sherd__allreduce_begin_fetch(sherd__allreduce_job *j);
/** For nodes that are to come in: a meeting follows. */
void sherd__allreduce_begin_stock(sherd__allreduce_job *j);
void sherd__allreduce_take_state(sherd__allreduce_job *j, member *m, const sherd__event *e);
/** Every member has answered. */
void sherd__allreduce_end_fetch(sherd__allreduce_job *j);

/* watch.c */

/** All have graded: from now on their sum is watched. */
void sherd__allreduce_watch_round(sherd__allreduce_job *j);
void sherd__allreduce_take_where(sherd__allreduce_job *j, uint32_t node, const uint8_t *bytes);
/** Ten times a second. */
void sherd__allreduce_watch(sherd__allreduce_job *j);
/** Patience with a sum is at its end. True: somebody was found at fault, and the round is made anew
 *  without. */
bool sherd__allreduce_overdue(sherd__allreduce_job *j);

/** From the next meeting on, and where there is such an order, of these nodes neither waits for
 *  the other in the first half of a sum; or at least the first one does not. */
void sherd__allreduce_part(sherd__allreduce_job *j, uint32_t waits, uint32_t sender);

/* still.c */

/** Members that owe something else than a sum, and of which nothing is heard. Ten times a
 *  second. */
void sherd__allreduce_watch_still(sherd__allreduce_job *j);
/** It has told where it is. */
void sherd__allreduce_take_alive(sherd__allreduce_job *j, member *m,
                                 const sherd__allreduce_where *was);

/* refuse.c */

void sherd__allreduce_take_refusal(sherd__allreduce_job *j, uint32_t node, const sherd__event *e);
/** One that has refused a sum has told where it is. */
void sherd__allreduce_take_broken(sherd__allreduce_job *j, uint32_t node);
/** It cannot take part now; it is asked again after a while, longer each time. */
void sherd__allreduce_put_off(sherd__allreduce_job *j, uint32_t node, const char *why);

/* doubt.c */

/** It says that its part of the step does not fit (SHERD_EBUSY, SHERD_ERANGE). */
void sherd__allreduce_doubt(sherd__allreduce_job *j, uint32_t node, int code, const char *text);
/** Every member has graded or refused. True: nobody refused, and nobody is in doubt. */
bool sherd__allreduce_settled(sherd__allreduce_job *j);
/** Nobody is in doubt any more. */
void sherd__allreduce_trust(sherd__allreduce_job *j);

/* dispute.c */

/** Of these two nodes one is at fault. */
void sherd__allreduce_dispute(sherd__allreduce_job *j, uint32_t a, uint32_t b);
/** In disputes with two others, which must agree to lie if this one is not at fault. */
bool sherd__allreduce_at_fault(const sherd__allreduce_job *j, uint32_t node);

/* job.c */

/** What came of sending. */
void sherd__allreduce_sent(sherd__allreduce_job *j, uint32_t node, int err);
/** Nothing that is under way is wanted: from no member. */
void sherd__allreduce_call_off(sherd__allreduce_job *j);
/** Nothing that it was asked is wanted, and it has nothing any more. */
void sherd__allreduce_release(sherd__allreduce_job *j, uint32_t node);
/** It takes no part any more, and does not know it: `why` is told. */
void sherd__allreduce_leave_out(sherd__allreduce_job *j, uint32_t node, const char *why);
/** What was asked for is over, with this error. */
void sherd__allreduce_answer(sherd__allreduce_job *j, int err, const char *why);

/* circle_meet.c */

/** Puts n things in this order. */
void sherd__allreduce_shuffle(uint32_t order, uint32_t *things, uint32_t n);
void sherd__allreduce_begin_meet(sherd__allreduce_job *j);
void sherd__allreduce_begin_connect(sherd__allreduce_job *j);
/** All have told which links they have: the circle stands, or somebody is left out. */
void sherd__allreduce_judge_links(sherd__allreduce_job *j);

/* round.c */

void sherd__allreduce_begin_step(sherd__allreduce_job *j);
/** False: a value is not a number. */
bool sherd__allreduce_take_costs(sherd__allreduce_job *j, member *m,
                                 const uint8_t *bytes) SHERD_MUST;
void sherd__allreduce_take_figures(sherd__allreduce_job *j, member *m, const uint8_t *bytes);
/** Every member has summed. */
void sherd__allreduce_end_step(sherd__allreduce_job *j);
/** The round cannot be ended as it was started; what was asked for is made again after a
 *  meeting. */
void sherd__allreduce_break(sherd__allreduce_job *j, const char *why);
/** The same where something came of it: members that are gone, or a pair of which one is at fault.
 *  What was broken off before may have been their doing, too, and does not count any more. */
void sherd__allreduce_break_without(sherd__allreduce_job *j, const char *why);

#endif
