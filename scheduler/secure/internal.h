/* What the state machine of secure aggregation (job.c), its rounds (secure_round.c) and what
 * sends for it (send.c) share. No other file includes this. */
#ifndef SCHEDULER_SECURE_INTERNAL_H
#define SCHEDULER_SECURE_INTERNAL_H

#include "learn/secure.h"
#include "scheduler/secure/job.h"
#include "scheduler/cluster/request_slot.h"
#include "scheduler/cluster/work_state.h"

enum { SECURE_FIRST_BLOCK = 16 }; /* of rounds; those below are of the whole job */

typedef enum phase { HEARING, JOINING, ROSTER, IDLE, GATHERING, HIDING, CONFIRMING, OPENING } phase;

typedef struct member {
    sherd__work_node w; /* first */
    bool out;           /* takes no part, or no more */
    bool waits;         /* up, and not of this roster: it came, or came back, later */
    bool away;          /* down, and may be back at once */
    uint64_t lost_ms;   /* when it was lost */
    uint32_t losses;    /* of it, in what was asked for and is not opened yet */
    bool known;         /* was of a roster that all agreed on */
    bool joined;        /* this session has blocks of the job */
    bool checks;        /* tells which pieces it cannot open (SHERD__OP_CHECK) */
    bool clean;         /* it can open all of this round, or does not check */
    bool told;          /* that it complains was said */
    bool bound;         /* in the sum that is asked for again */
    bool opened;        /* in the sum that was opened last */
    uint32_t tries;     /* of JOIN, while it was busy */
    uint64_t again_ms;  /* when to ask it to JOIN once more; 0: not to */
    uint32_t self;      /* number in the roster */
    uint32_t asked;     /* tasks that are open */
    uint32_t next_block;
    bool sealed, hidden;     /* answered in this round; before: sealed when it has joined */
    sherd__fragment *pieces; /* what it sealed */
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
    uint32_t tasks; /* numbers given */
    uint32_t least; /* survivors that the first roster needed: none needs fewer */
    bool begun;     /* a roster was agreed on */
    bool clocked;
    uint64_t began_ms;    /* when it began, once clocked */
    bool anew;            /* this one will not do: another one without some */
    uint32_t bound;       /* the next roster is of these members; 0: of all that are up */
    bool exact;           /* ... and all of them are in it, and in the sum */
    uint64_t bound_step;  /* for sums of this step */
    uint64_t opened_step; /* of the sum that was opened last; UINT64_MAX: none was */
    uint32_t bound_least; /* survivors that a roster of these needs at least */
    int refused;          /* code of the last refusal of a JOIN or ROSTER, and its text */
    char refusal[SHERD__TEXT_MAX + 420];
    uint8_t *blames; /* nodes x nodes: 1 where the row's cannot open what the column's has
                               sealed for it, in some round */
    double *spent;   /* what rounds cost the places of each window of an epoch; under
                               mail.lock, as rounds_asked is */
    size_t windows;
    uint64_t rounds_asked;
    uint8_t roster[SHERD__ABOUT];
    uint8_t seal[8 * SHERD__SECURE_SEAL]; /* questions of the round, the same for all */
    uint8_t hide[8 * (SHERD__SECURE_HIDE + SHERD__RECIPE_LAYERS_MAX + 1)];
    size_t hide_len; /* numbers */
    uint64_t round;
    uint64_t now_ms;
    uint32_t answers;                  /* of this round */
    uint8_t bound_about[SHERD__ABOUT]; /* what members seal and sign in it */
    uint32_t confirmed_len; /* members that have signed its survivors, U of them at most */
    uint8_t *confirmed;     /* their numbers and signatures, as OPEN has them */
    uint64_t *uploads;      /* their sum, a.len */
    uint64_t *pieces;       /* answers, U of them */
    uint32_t *survivors;    /* members of this round's sum, ascending */
    uint32_t survivors_len;
    sherd__secure_sum *sum; /* under way */
    uint64_t done_sums, asked_sums;
    sherd__request_slot mail; /* asked: a sherd__secure_sum */
    sherd__aggregate first;   /* what the first roster agreed on: as it is once the work stands */
};

/* send.c: blocks and task of one question to one member. SHERD_EINVAL where its session
 * takes none, which is about to end then; SHERD_ENOMEM. */

/** The plan but for what differs from member to member. */
sherd__secure_plan sherd__secure_plan_of(const sherd__secure_job *j);
/** What the roster, and the round, are about: before they are sent. */
void sherd__secure_about_roster(sherd__secure_job *j, const uint8_t *cards);
void sherd__secure_about_round(sherd__secure_job *j);
int sherd__secure_send_join(sherd__secure_job *j, member *m) SHERD_MUST;
int sherd__secure_send_roster(sherd__secure_job *j, member *m, const uint8_t *cards) SHERD_MUST;
/** SEAL and HIDE. */
int sherd__secure_send_hide(sherd__secure_job *j, member *m) SHERD_MUST;
/** CONFIRM, and CHECK to one that does. */
int sherd__secure_send_confirm(sherd__secure_job *j, member *m) SHERD_MUST;
int sherd__secure_send_open(sherd__secure_job *j, member *m) SHERD_MUST;

/* members.c */

/** Up, and taking part. */
bool sherd__secure_up(const member *m);
/** Of this roster, and up; and how many are. */
bool sherd__secure_in(const member *m);
uint32_t sherd__secure_count(const sherd__secure_job *j);
/** Up, and to be in the next roster. */
bool sherd__secure_wanted(const sherd__secure_job *j, const member *m);
/** How many members a sum needs, and a roster to begin one. */
uint32_t sherd__secure_least(const sherd__secure_job *j);
/** What time it is. */
void sherd__secure_clock(sherd__secure_job *j, uint64_t now_ms);
/** Survivors without which no roster is made. */
uint32_t sherd__secure_floor(const sherd__secure_job *j);
/** How many of a roster of n must be left, once there was one. */
uint32_t sherd__secure_needed(const sherd__secure_job *j, uint32_t n);
/** A node that took part, or was about to, is down. One that is so too often before a sum is opened
 *  takes no part any more. */
void sherd__secure_lost(sherd__secure_job *j, uint32_t node);
/** Of those that are up, or may be back, a roster could be made anew. */
bool sherd__secure_hope(const sherd__secure_job *j);
/** The roster is not of those who are wanted, or too few of it are there. */
bool sherd__secure_others(const sherd__secure_job *j);
/** Sums of this round's step are over its survivors, or else over members of its roster. */
void sherd__secure_bind(sherd__secure_job *j, bool survivors);
void sherd__secure_unbind(sherd__secure_job *j);
/** If a sum of this step was opened or begun before, in this run or an earlier one, it is bound.
 *  False: one of them is no node of ours, and that is the end. */
bool sherd__secure_bind_named(sherd__secure_job *j, uint64_t step);
/** A round of this step costs privacy, whatever comes of it. */
void sherd__secure_spend(sherd__secure_job *j, uint64_t step);
/** The round's members are written down. False: that is the end. */
bool sherd__secure_note_round(sherd__secure_job *j);
/** The survivors of this round are written down, before they are named. False: that is the end. */
bool sherd__secure_name(sherd__secure_job *j);
/** Who is missing, and for how long, while the next roster waits for somebody. */
void sherd__secure_waiting(const void *job, uint64_t now_ms, char *out, size_t size);
/** Takes no part any more; whoever waits for the others goes on. */
void sherd__secure_leave_out(sherd__secure_job *j, uint32_t node);
/** Leaves out nodes that more than T others accuse, and those that accuse more than T others: one
 *  of each pair is at fault, and T at most are. Whether there were any. */
bool sherd__secure_judge(sherd__secure_job *j);
/** The end: `have` nodes `what`. */
void sherd__secure_too_few(sherd__secure_job *j, uint32_t have, const char *what);

/* secure_round.c */

/** What came of sending to a node: one that takes no more is about to end, want of memory is the
 *  end of all. */
void sherd__secure_sent(sherd__secure_job *j, uint32_t node, int err);
void sherd__secure_no_memory(sherd__secure_job *j);

/** With as many members as it needs. */
void sherd__secure_begin_round(sherd__secure_job *j, sherd__secure_sum *s);
/** All have uploaded who will: the survivors are named; or, where they are too few, the sum is to
 *  be asked for again, if there is hope. */
void sherd__secure_begin_confirm(sherd__secure_job *j);
/** Enough have signed whose sum it is, or no more will: it is opened, or as above. */
void sherd__secure_begin_open(sherd__secure_job *j);
/** Too few have answered: the sum is to be asked for again, if there is hope; of the same members
 *  if it was to be opened. */
void sherd__secure_unopened(sherd__secure_job *j);
/** The sum is its asker's again. */
void sherd__secure_over(sherd__secure_job *j);
void sherd__secure_take_upload(sherd__secure_job *j, uint32_t node, const uint8_t *bytes);
void sherd__secure_take_confirmation(sherd__secure_job *j, uint32_t node, const uint8_t *bytes);
void sherd__secure_take_check(sherd__secure_job *j, uint32_t node, const uint8_t *bytes);
/** Members that can open the sum of this round. */
uint32_t sherd__secure_clean(const sherd__secure_job *j);
void sherd__secure_take_answer(sherd__secure_job *j, uint32_t node, const uint8_t *bytes);

#endif
