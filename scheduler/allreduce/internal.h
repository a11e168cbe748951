/* Shared by the leader of an all-reduce group (job.c), its meetings (meet.c), its rounds (round.c),
 * the code that sends for it (send.c, rows.c), fetches the state (fetch.c), watches sums (watch.c)
 * and members (still.c), handles refusals (refuse.c, doubt.c) and assigns blame (dispute.c). No
 * other file includes this header. */
#ifndef SCHEDULER_ALLREDUCE_INTERNAL_H
#define SCHEDULER_ALLREDUCE_INTERNAL_H

#include "learn/allreduce_plan.h"
#include "learn/member.h"
#include "scheduler/allreduce/job.h"
#include "scheduler/cluster/request_slot.h"
#include "scheduler/cluster/work_state.h"

#define MEMBER_ANSWER_MS 30000.0 /* for a member with a live session to report its progress */
#define FAILED_MOST 3u /* aborted rounds in a row after which the training ends with an error */

typedef enum phase { HEARING, MEETING, CONNECTING, IDLE, STEPPING, FETCHING } phase;

/* A pack of examples that a member must not keep. */
typedef struct spent_pack {
    uint32_t pack, *rows;
    size_t len;
} spent_pack;

typedef struct member {
    sherd__work_node w; /* first */
    bool out;           /* takes no part, or no longer takes part */
    bool known;         /* it has been connected */
    bool loaded;        /* it has the state */
    bool stood;         /* it was a member of a connected group */
    bool in;            /* a member of the group, with the number `self` */
    uint32_t self;
    uint32_t asked; /* number of open tasks */
    bool has_text;
    uint32_t state; /* number of the block with its state, until the node has read it; 0: none */
    uint32_t next_block;
    uint8_t *has;      /* a bit for each example that was sent */
    uint64_t kept;     /* bytes of the examples that it keeps */
    uint32_t packs;    /* packs sent in this session */
    spent_pack *spent; /* packs to be dropped after the round */
    uint32_t spent_len;
    uint32_t from, to;   /* its shards: range of indices in the job's list */
    bool graded, summed; /* in this round */
    double owed_s;       /* in all rounds, until it had computed its gradients */
    bool pace_named;     /* the log says that it is slow */
    bool refused;        /* it reports that its part of this round does not fit */
    int claim;           /* code of its last refusal since the doubt began; SHERD_OK: none */
    bool accuses;        /* it refused the part in question */
    bool denied;         /* it computed the part in question without an error */
    bool replied, moved; /* since the last WHERE: it answered; it made progress */
    sherd__allreduce_where where;
    uint64_t asked_ms;         /* time of the last WHERE that is not answered; 0: none */
    uint64_t alive_ms;         /* when it last reported that it computes */
    uint32_t looks;            /* number of WHERE answers since it was last known to compute */
    uint64_t disputes;         /* bit set of nodes; this node or the other one is at fault */
    uint64_t breaks;           /* the same for broken links, since the last complete round */
    bool breaking;             /* it refused a sum and must report which link broke */
    uint32_t put_off;          /* number of times that it was put off */
    uint64_t again_ms;         /* earliest time at which it may join again */
    uint8_t hash[SHERD__HASH]; /* of its state, as reported by it */
    int64_t links[SHERD__ALLREDUCE_MOST];
    sherd__allreduce_link_bytes links_now, links_before; /* as last reported, guarded by the stats'
                                                            lock; of earlier meetings */
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
    uint64_t id;    /* of the group's last meeting */
    bool stood;     /* the group has been connected at least once */
    bool broken;    /* it must meet before any other work */
    bool aborted;   /* a round was aborted since the last complete one: no node joins before a round
                       is complete, since a node that joins and leaves repeatedly would block all */
    uint32_t order; /* key of the order in which members are numbered; 0: as the nodes */
    uint32_t tasks; /* task numbers used */
    uint64_t now_ms;
    uint64_t round, commit; /* the last round started; the last complete round */
    double rate;            /* rate of the update of round `commit` */
    uint32_t failed;        /* aborted rounds since the last complete one */
    uint64_t begun_ms;      /* start of this round */
    uint64_t graded_ms;     /* when the last member of this round had computed its gradients */
    uint64_t moved_ms;      /* when the sum was last known to make progress */
    uint64_t asked_ms;      /* since when members are asked about the sum; 0: they are not asked */
    uint64_t phase_ms;      /* start of the phase, for phases without another clock */
    uint32_t looks;
    double *fetch;         /* destination of the state that is fetched */
    sherd__version *stock; /* a state for nodes that joined; becomes o.state once all agree on it */
    size_t fetch_len;
    double usual_ms;           /* moving average, from graded_ms to a round's end; 0: not known */
    size_t numbers;            /* of the state */
    sherd__allreduce_ask *ask; /* the request in progress */
    uint32_t turned;           /* by how many members the partition is rotated */
    bool doubted;              /* members refused a step, and too few others confirmed it */
    uint32_t doubted_part;     /* the part of the partition that the first of them refused */
    int refused;               /* code of the last refusal; its text */
    char why[SHERD__TEXT_MAX + 420];
    uint32_t *shards; /* shards that count in this round, ascending */
    uint32_t shards_len;
    sherd__request_slot requests; /* requests: sherd__allreduce_ask */
    sherd__allreduce_stats stats; /* guarded by requests's lock */
};

/* send.c: sends the blocks and the task of one question to one member. SHERD_EINVAL: its session
 * accepts none and is about to end; SHERD_ENOMEM. */

int sherd__allreduce_send_meet(sherd__allreduce_job *j, uint32_t node, const char *roster,
                               size_t len) SHERD_MUST;
int sherd__allreduce_send_connect(sherd__allreduce_job *j, uint32_t node) SHERD_MUST;
/** Sends STEP and REDUCE; `by` is the divisor of the sum. */
int sherd__allreduce_send_step(sherd__allreduce_job *j, uint32_t node, double by) SHERD_MUST;
/** Requests the first `len` numbers of its state, or a hash of them. */
int sherd__allreduce_send_state(sherd__allreduce_job *j, uint32_t node, size_t len,
                                bool hash) SHERD_MUST;
int sherd__allreduce_send_where(sherd__allreduce_job *j, uint32_t node) SHERD_MUST;

/* rows.c */

/** Sends the rows of this list that the member does not have. Errors as above. */
int sherd__allreduce_send_rows(sherd__allreduce_job *j, uint32_t node, const uint32_t *rows,
                               size_t len) SHERD_MUST;
/** Called at the end of a round: tells the node to drop examples that it must not keep. */
void sherd__allreduce_send_drops(sherd__allreduce_job *j, uint32_t node);
/** Called when the member's session is lost: its examples are lost with it. */
void sherd__allreduce_forget_rows(sherd__allreduce_job *j, uint32_t node);

/* fetch.c */

/** Fetches the state for a request, which is answered when the state has arrived. */
void sherd__allreduce_begin_fetch(sherd__allreduce_job *j);
/** Fetches the state for nodes that are to join; a meeting follows. */
void sherd__allreduce_begin_stock(sherd__allreduce_job *j);
void sherd__allreduce_take_state(sherd__allreduce_job *j, member *m, const sherd__event *e);
/** Called when every member has answered. */
void sherd__allreduce_end_fetch(sherd__allreduce_job *j);

/* watch.c */

/** Called when all members have computed their gradients: their sum is watched from now on. */
void sherd__allreduce_watch_round(sherd__allreduce_job *j);
void sherd__allreduce_take_where(sherd__allreduce_job *j, uint32_t node, const uint8_t *bytes);
/** Called ten times a second. */
void sherd__allreduce_watch(sherd__allreduce_job *j);
/** Called when a sum has exceeded its time limit. Returns true if a member was found at fault; the
 *  round is then repeated without it. */
bool sherd__allreduce_overdue(sherd__allreduce_job *j);

/** Changes the order of members for the next meeting so that neither of these nodes waits for the
 *  other in the first half of a sum or, if this is impossible, so that at least `waits` does not
 *  wait for `sender`. */
void sherd__allreduce_part(sherd__allreduce_job *j, uint32_t waits, uint32_t sender);

/* still.c */

/** Watches members that owe an answer other than a sum and send nothing. Called ten times a
 *  second. */
void sherd__allreduce_watch_still(sherd__allreduce_job *j);
/** Called when a member has answered WHERE. */
void sherd__allreduce_take_alive(sherd__allreduce_job *j, member *m,
                                 const sherd__allreduce_where *was);

/* refuse.c */

void sherd__allreduce_take_refusal(sherd__allreduce_job *j, uint32_t node, const sherd__event *e);
/** Called when a member that refused a sum has answered WHERE. */
void sherd__allreduce_take_broken(sherd__allreduce_job *j, uint32_t node);
/** Excludes the member for now. It is asked again after a delay, which doubles each time. */
void sherd__allreduce_put_off(sherd__allreduce_job *j, uint32_t node, const char *why);

/* doubt.c */

/** Called when a member reports that its part of the step does not fit (SHERD_EBUSY,
 *  SHERD_ERANGE). */
void sherd__allreduce_doubt(sherd__allreduce_job *j, uint32_t node, int code, const char *text);
/** Called after each answer or refusal of a step. Returns true if every member has computed its
 *  gradients and no refusal is in doubt. */
bool sherd__allreduce_settled(sherd__allreduce_job *j);
/** Clears the record of a doubted refusal. */
void sherd__allreduce_trust(sherd__allreduce_job *j);

/* dispute.c */

/** Records that one of these two nodes is at fault. */
void sherd__allreduce_dispute(sherd__allreduce_job *j, uint32_t a, uint32_t b);
/** Returns true if this node is in disputes with two others, which must both report falsely if it
 *  is not at fault. */
bool sherd__allreduce_at_fault(const sherd__allreduce_job *j, uint32_t node);

/* job.c */

/** Handles the result of sending. */
void sherd__allreduce_sent(sherd__allreduce_job *j, uint32_t node, int err);
/** Cancels all open tasks of all members. */
void sherd__allreduce_call_off(sherd__allreduce_job *j);
/** Cancels the open tasks of this member, which then holds no data of the job. */
void sherd__allreduce_release(sherd__allreduce_job *j, uint32_t node);
/** Excludes a member for the rest of the training and logs `why`. */
void sherd__allreduce_leave_out(sherd__allreduce_job *j, uint32_t node, const char *why);
/** Answers the request in progress with this error. */
void sherd__allreduce_answer(sherd__allreduce_job *j, int err, const char *why);

/* meet.c */

/** Permutes n values by `order`; 0 leaves them unchanged. */
void sherd__allreduce_shuffle(uint32_t order, uint32_t *things, uint32_t n);
void sherd__allreduce_begin_meet(sherd__allreduce_job *j);
void sherd__allreduce_begin_connect(sherd__allreduce_job *j);
/** Called when all members have reported their links. Connects the group or leaves out a member. */
void sherd__allreduce_judge_links(sherd__allreduce_job *j);

/* round.c */

void sherd__allreduce_begin_step(sherd__allreduce_job *j);
/** Returns false if a value is not a number. */
bool sherd__allreduce_take_costs(sherd__allreduce_job *j, member *m,
                                 const uint8_t *bytes) SHERD_MUST;
void sherd__allreduce_take_figures(sherd__allreduce_job *j, member *m, const uint8_t *bytes);
/** Called when every member has summed. */
void sherd__allreduce_end_step(sherd__allreduce_job *j);
/** Aborts the round; the request is made again after a meeting. */
void sherd__allreduce_break(sherd__allreduce_job *j, const char *why);
/** The same if the cause was found: members that are gone, or a pair of which one is at fault. The
 *  count of aborted rounds restarts, since the same members may have caused the earlier ones. */
void sherd__allreduce_break_without(sherd__allreduce_job *j, const char *why);

#endif
