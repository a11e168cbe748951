/* Shared by the state machine of secure aggregation (job.c), its members (members.c), its rounds
 * (round.c) and the code that sends for it (send.c). No other file includes this header. */
#ifndef SCHEDULER_SECURE_INTERNAL_H
#define SCHEDULER_SECURE_INTERNAL_H

#include "learn/secure.h"
#include "scheduler/secure/job.h"
#include "scheduler/cluster/request_slot.h"
#include "scheduler/cluster/work_state.h"

enum { SECURE_FIRST_BLOCK = 16 }; /* of rounds; lower numbers are blocks of the whole job */

typedef enum phase { HEARING, JOINING, ROSTER, IDLE, GATHERING, HIDING, CONFIRMING, OPENING } phase;

typedef struct member {
    sherd__work_node w;    /* first */
    bool out;              /* takes no part, or no longer takes part */
    bool waits;            /* up, but not in this roster: it connected, or reconnected, later */
    bool away;             /* down; may be back soon */
    uint64_t lost_ms;      /* when it was lost */
    uint32_t losses;       /* how often it was lost since the last sum was opened */
    bool known;            /* was in a roster that all members accepted */
    bool joined;           /* this session has blocks of the job */
    bool checks;           /* reports which pieces it cannot open (SHERD__OP_CHECK) */
    bool clean;            /* it can open all pieces of this round, or does not check */
    bool complaint_logged; /* its complaint has been logged */
    bool bound;            /* in the sum that is requested again */
    bool opened;           /* in the sum that was opened last */
    uint32_t tries;        /* attempts to JOIN while it was busy */
    uint64_t again_ms;     /* when to ask it to JOIN again; 0: not */
    uint32_t self;         /* number in the roster */
    uint32_t asked;        /* number of open tasks */
    uint32_t next_block;
    bool sealed, hidden;     /* answered in this round; sealed before it: has joined */
    sherd__fragment *pieces; /* the pieces that it sealed */
    uint8_t card[SHERD__SECURE_CARD];
} member;

struct sherd__secure_job {
    sherd__work_state w; /* first */
    sherd__secure_job_options o;
    char *text;
    member *nodes;
    uint32_t *node_of; /* roster: member to node */
    phase phase;
    sherd__aggregate a;
    uint32_t tasks;       /* task numbers used */
    uint32_t least;       /* survivors that the first roster needed; no roster needs fewer */
    bool roster_accepted; /* a roster has been accepted */
    bool clocked;
    uint64_t began_ms;    /* start time, valid if clocked is set */
    bool replace;         /* this roster is not usable: make another without some members */
    uint32_t bound;       /* number of members of the next roster; 0: all nodes that are up */
    bool exact;           /* ... and all of them must be in it, and in the sum */
    uint64_t bound_step;  /* the step for which this holds */
    uint64_t opened_step; /* step of the sum that was opened last; UINT64_MAX: none was */
    uint32_t bound_least; /* smallest number of survivors that a roster of these nodes may need */
    int refused;          /* code of the last refusal of a JOIN or ROSTER, and its text */
    char refusal[SHERD__TEXT_MAX + 420];
    char withheld[SHERD__TEXT_MAX + 420]; /* the last refusal of a gradient by a node's policy */
    uint8_t *blames; /* nodes x nodes: 1 if the row's node cannot open a piece that the column's
                        node sealed for it, in any round */
    double
        *spent; /* privacy cost of the places of each window of an epoch; guarded by requests.lock,
                        as is rounds_asked */
    size_t windows;
    uint64_t rounds_asked;
    uint8_t roster[SHERD__ABOUT];
    uint8_t seal[8 * SHERD__SECURE_SEAL]; /* questions of the round, the same for all members */
    uint8_t hide[8 * (SHERD__SECURE_HIDE + SHERD__RECIPE_LAYERS_MAX + 1)];
    size_t hide_len; /* numbers in hide */
    uint64_t round;
    uint64_t now_ms;
    uint32_t answers;                  /* in this round */
    uint8_t bound_about[SHERD__ABOUT]; /* digest that members seal and sign in this round */
    uint32_t confirmed_len;            /* members that have signed the survivors, at most U */
    uint8_t *confirmed;                /* their numbers and signatures, in the format of OPEN */
    uint64_t *uploads;                 /* the sum of the uploads, a.len numbers */
    uint64_t *pieces;                  /* answers, U of them */
    uint32_t *survivors;               /* members in this round's sum, ascending */
    uint32_t survivors_len;
    sherd__secure_sum *sum; /* the request in progress */
    uint64_t done_sums, asked_sums;
    sherd__request_slot requests; /* requests: sherd__secure_sum */
    sherd__aggregate first; /* parameters of the first roster, constant once the job is ready */
};

/* send.c: sends the blocks and the task of one question to one member. SHERD_EINVAL: its session
 * accepts none and is about to end; SHERD_ENOMEM. */

/** Returns the plan without the fields that differ between members. */
sherd__secure_plan sherd__secure_plan_of(const sherd__secure_job *j);
/** Compute the digests of the roster and of the round; called before these are sent. */
void sherd__secure_about_roster(sherd__secure_job *j, const uint8_t *cards);
void sherd__secure_about_round(sherd__secure_job *j);
int sherd__secure_send_join(sherd__secure_job *j, member *m) SHERD_MUST;
int sherd__secure_send_roster(sherd__secure_job *j, member *m, const uint8_t *cards) SHERD_MUST;
/** Sends SEAL and HIDE. */
int sherd__secure_send_hide(sherd__secure_job *j, member *m) SHERD_MUST;
/** Sends CONFIRM, and CHECK if the member supports it. */
int sherd__secure_send_confirm(sherd__secure_job *j, member *m) SHERD_MUST;
int sherd__secure_send_open(sherd__secure_job *j, member *m) SHERD_MUST;

/* members.c */

/** Returns true if the member is up and takes part. */
bool sherd__secure_up(const member *m);
/** Returns true if the member is in this roster and up; the next function counts these. */
bool sherd__secure_in(const member *m);
uint32_t sherd__secure_count(const sherd__secure_job *j);
/** Returns true if the member is up and is to be in the next roster. */
bool sherd__secure_wanted(const sherd__secure_job *j, const member *m);
/** Returns the number of members that a sum, and a roster to start one, needs. */
uint32_t sherd__secure_least(const sherd__secure_job *j);
/** Sets the current time. */
void sherd__secure_clock(sherd__secure_job *j, uint64_t now_ms);
/** Returns the number of survivors below which no roster is made. */
uint32_t sherd__secure_floor(const sherd__secure_job *j);
/** Returns how many survivors a roster of n needs after the first roster. */
uint32_t sherd__secure_needed(const sherd__secure_job *j, uint32_t n);
/** Called when a node that takes part, or was about to, is down. A node that is lost too often
 *  before a sum is opened is left out. */
void sherd__secure_lost(sherd__secure_job *j, uint32_t node);
/** Returns true if the nodes that are up, or may be back, are enough for another roster. */
bool sherd__secure_hope(const sherd__secure_job *j);
/** Returns true if the roster differs from the wanted members, or too few of its members are up. */
bool sherd__secure_others(const sherd__secure_job *j);
/** Restricts further sums of this round's step to exactly its survivors, or to its roster's
 *  members. */
void sherd__secure_bind(sherd__secure_job *j, bool survivors);
void sherd__secure_unbind(sherd__secure_job *j);
/** Restricts the sum if one of this step was opened or started before, in this run or an earlier
 *  one. Returns false, and ends the job, if that sum was opened and one of its nodes is not a
 *  node of the cluster. */
bool sherd__secure_bind_named(sherd__secure_job *j, uint64_t step);
/** Adds the privacy cost of a round of this step, whatever its result. */
void sherd__secure_spend(sherd__secure_job *j, uint64_t step);
/** Records the round's members. Returns false, and ends the job, on failure. */
bool sherd__secure_note_round(sherd__secure_job *j);
/** Records the survivors of this round before they are sent to members. Returns false, and ends the
 *  job, on failure. */
bool sherd__secure_name(sherd__secure_job *j);
/** Writes which node is missing, and for how long, while the next roster waits for a node. */
void sherd__secure_waiting(const void *job, uint64_t now_ms, char *out, size_t size);
/** Excludes a node; phases that wait for answers continue without it. */
void sherd__secure_leave_out(sherd__secure_job *j, uint32_t node);
/** Leaves out nodes that more than T others accuse, and nodes that accuse more than T others: one
 *  of each pair is at fault, and at most T nodes are. Returns true if any was left out. */
bool sherd__secure_judge(sherd__secure_job *j);
/** Ends the job with an error that says that `have` nodes `what`. */
void sherd__secure_too_few(sherd__secure_job *j, uint32_t have, const char *what);

/* round.c */

/** Handles the result of sending to a node. A session that accepts no more messages is about to
 *  end; lack of memory ends the job. */
void sherd__secure_sent(sherd__secure_job *j, uint32_t node, int err);
void sherd__secure_no_memory(sherd__secure_job *j);

/** Starts a round; the roster must have as many members as it needs. */
void sherd__secure_begin_round(sherd__secure_job *j, sherd__secure_sum *s);
/** Called when all uploads that will come have come. Names the survivors; if they are too few,
 *  requests the sum again if enough members may be back. */
void sherd__secure_begin_confirm(sherd__secure_job *j);
/** Called when enough members have signed the survivors, or no more will. Opens the sum, or
 *  continues as above. */
void sherd__secure_begin_open(sherd__secure_job *j);
/** Called when too few members have answered. Requests the sum again if enough members may be back,
 *  over the same members if it was to be opened. */
void sherd__secure_unopened(sherd__secure_job *j);
/** Completes the request of a sum. */
void sherd__secure_over(sherd__secure_job *j);
void sherd__secure_take_upload(sherd__secure_job *j, uint32_t node, const uint8_t *bytes);
void sherd__secure_take_confirmation(sherd__secure_job *j, uint32_t node, const uint8_t *bytes);
void sherd__secure_take_check(sherd__secure_job *j, uint32_t node, const uint8_t *bytes);
/** Returns the number of members that can open the sum of this round. */
uint32_t sherd__secure_clean(const sherd__secure_job *j);
void sherd__secure_take_answer(sherd__secure_job *j, uint32_t node, const uint8_t *bytes);

#endif
