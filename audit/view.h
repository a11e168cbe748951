/*
 * What each node saw, read back from records (store/record.h): a coordinator's, which holds all
 * nodes, or nodes' own, one folder each. Nothing in a record is trusted: files are mapped, never
 * believed beyond their size; what cannot be read is said (trouble) and the rest is used. The side
 * that wrote a record is taken from its bytes: the stream that opens with a HELLO went to the node.
 */
#ifndef AUDIT_VIEW_H
#define AUDIT_VIEW_H

#include "audit/reading.h"
#include "store/file.h"

/** A block as it was PUT. */
typedef struct sherd__view_block {
    uint64_t job;
    uint32_t number;
    uint32_t stream; /* which of the node's conversations */
    size_t at;       /* of part 0 in what that one received */
    bool whole;      /* all parts are there */
    sherd__fragment_info info;
} sherd__view_block;

#define SHERD__VIEW_NONE SIZE_MAX

typedef struct sherd__view_task {
    uint64_t job;
    uint32_t number, attempt;
    uint32_t op;        /* 1: multiply, see docs/PROTOCOL.md */
    size_t left, right; /* indices of blocks; SHERD__VIEW_NONE: none, or not in the record */
    uint32_t primes_len, primes[SHERD__READ_PRIMES];
} sherd__view_task;

/** A file of a record, and how far it can be read. */
typedef struct sherd__view_file {
    sherd__map map;
    char name[112];
    size_t good; /* the first byte that cannot be read; map.len: all of it can */
    bool midway; /* it ends where more of a block should follow */
} sherd__view_file;

/** One conversation. */
typedef struct sherd__view_stream {
    sherd__view_file in, out; /* what the node received, what it sent */
} sherd__view_stream;

typedef struct sherd__node_view {
    char name[96], about[120], key[96];
    uint32_t domain; /* of sherd__views.domains: who it counts for */
    bool shuffled;   /* record version 2: groups of columns travel in a drawn order */
    sherd__view_stream *streams;
    uint32_t streams_len;
    sherd__view_block *blocks;
    size_t blocks_len, blocks_room;
    sherd__view_task *tasks; /* in order of arrival */
    size_t tasks_len, tasks_room;
    uint64_t bytes_in, bytes_out;
    uint64_t results;  /* RESULTs that it began to send */
    char trouble[400]; /* what of it could not be read, by file and byte, or empty */
} sherd__node_view;

/** Nodes that count as one adversary. */
typedef struct sherd__view_domain {
    char name[96];   /* as the node file has it; where that is not known, the node's own */
    uint64_t number; /* of the record */
    uint32_t nodes;  /* how many of the record's are of it */
} sherd__view_domain;

/** How an operand of a job was cut and coded, as the coordinator wrote it down (store/record.h). */
typedef struct sherd__view_coded {
    uint64_t job;
    bool both;                      /* share; else share1 */
    uint32_t blocks, masks, shares; /* K, T, N */
    uint64_t rows, cols, part, panel, largest;
    uint64_t right; /* B's largest; 0: not known */
    bool stays;
} sherd__view_coded;

typedef struct sherd__views {
    sherd__node_view *nodes;
    size_t len;
    sherd__view_domain *domains; /* in the order of their numbers; of each node one, if not known */
    uint32_t domains_len;
    bool domains_known; /* a coordinator's record of version 2 says which nodes are one domain */
    bool of_coordinator;
    bool cut; /* it has no end, or more of it is left out than trouble of nodes says */
    sherd__view_coded *coded; /* of a coordinator's record, as far as it says */
    size_t coded_len, coded_room;
    uint32_t *order; /* of an operand of a training that is kept: the row of the data that row i
                            is; NULL: in order */
    size_t order_len;
    char trouble[400]; /* of the record as a whole: no index, not complete */
} sherd__views;

/**
 * Reads the record in `dir` and appends its nodes to *v (zeroed before the first). A second record
 * must be a node's own, as the first (SHERD_EINVAL). Domains are read from version 2 on; where one
 * node's is not told, none counts, and each node is one of its own (trouble). SHERD_EOPEN,
 * SHERD_EIO: no such folder or file; SHERD_EFORMAT: no record, of a version beyond 2, with a domain
 * that is none, or none of its bytes can be read; SHERD_ENOMEM. On failure *v is as it was.
 */
int sherd__views_add(sherd__views *v, const char *dir, sherd_diag *d) SHERD_MUST;
/** What was said of a job; NULL: nothing. */
const sherd__view_coded *sherd__view_coding(const sherd__views *v, uint64_t job);
/** Safe on a zeroed struct and twice. */
void sherd__views_fini(sherd__views *v);

/** Tells bodies apart within one record; no cryptographic hash. */
uint64_t sherd__view_hash(const uint8_t *body, size_t len);
/** The body of a whole block, info.len bytes, into out. SHERD_EFRAME where its parts do not
 *  follow. */
int sherd__view_body(const sherd__node_view *v, const sherd__view_block *b,
                     uint8_t *out) SHERD_MUST;

#endif
