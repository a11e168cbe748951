/*
 * What each node saw, read from records (store/record.h): a coordinator's, which has all nodes, or
 * nodes' own, one folder each. Nothing in a record is trusted: files are mapped, and no length in
 * them is trusted beyond their size. What cannot be read is reported (trouble) and the rest is
 * used. The side that wrote a record is found from its bytes: the stream that starts with a HELLO
 * was sent to the node.
 */
#ifndef AUDIT_VIEW_H
#define AUDIT_VIEW_H

#include "audit/reading.h"
#include "store/file.h"

/** A block as PUT sent it. */
typedef struct sherd__view_block {
    uint64_t job;
    uint32_t number;
    uint32_t stream; /* index of the node's conversation */
    size_t at;       /* offset of part 0 in the bytes received in that conversation */
    bool whole;      /* all parts are present */
    sherd__fragment_info info;
} sherd__view_block;

#define SHERD__VIEW_NONE SIZE_MAX

typedef struct sherd__view_task {
    uint64_t job;
    uint32_t number, attempt;
    uint32_t op;        /* 1: multiply, see docs/PROTOCOL.md */
    size_t left, right; /* indices of blocks; SHERD__VIEW_NONE: no block, or not in the record */
    uint32_t primes_len, primes[SHERD__READ_PRIMES];
} sherd__view_task;

/** A file of a record, and how much of it can be read. */
typedef struct sherd__view_file {
    sherd__map map;
    char name[112];
    size_t good; /* the first byte that cannot be read; map.len: all of it can be */
    bool midway; /* it ends within a block */
} sherd__view_file;

/** One conversation. */
typedef struct sherd__view_stream {
    sherd__view_file in, out; /* what the node received, what it sent */
} sherd__view_stream;

typedef struct sherd__node_view {
    char name[96], about[120], key[96];
    uint32_t domain; /* index in sherd__views.domains: the domain that it belongs to */
    bool shuffled;   /* record version 2: groups of columns are sent in random order */
    sherd__view_stream *streams;
    uint32_t streams_len;
    sherd__view_block *blocks;
    size_t blocks_len, blocks_room;
    sherd__view_task *tasks; /* in order of arrival */
    size_t tasks_len, tasks_room;
    uint64_t bytes_in, bytes_out;
    uint64_t results;  /* RESULTs that it started to send */
    char trouble[400]; /* what could not be read, by file and byte, or empty */
} sherd__node_view;

/** Nodes that are one adversary. */
typedef struct sherd__view_domain {
    char name[96];   /* from the node file; if unknown, the node's name */
    uint64_t number; /* in the record */
    uint32_t nodes;  /* how many nodes of the record belong to it */
} sherd__view_domain;

/** How an operand of a job was cut and coded, according to the coordinator's record
 *  (store/record.h). */
typedef struct sherd__view_coded {
    uint64_t job;
    bool both;                      /* share; else share1 */
    bool inner;                     /* by the inner-product code; else by Lagrange's */
    uint32_t blocks, masks, shares; /* K, T, N */
    uint64_t rows, cols, part, panel, largest;
    uint64_t right; /* B's largest magnitude; 0: unknown */
    bool stays;
} sherd__view_coded;

typedef struct sherd__views {
    sherd__node_view *nodes;
    size_t len;
    sherd__view_domain *domains; /* in the order of their numbers; if unknown, one for each node */
    uint32_t domains_len;
    bool domains_known; /* a coordinator's record of version 2 assigns nodes to domains */
    bool of_coordinator;
    bool cut;                 /* it has no end, or lacks more than the nodes' trouble reports */
    sherd__view_coded *coded; /* from a coordinator's record, if it has them */
    size_t coded_len, coded_room;
    uint32_t *order; /* for a kept operand of a training: the row of the data that row i is; NULL:
                        in order */
    size_t order_len;
    char trouble[400]; /* of the whole record: no index, incomplete */
} sherd__views;

/**
 * Reads the record in `dir` and appends its nodes to *v (zeroed before the first call). A second
 * record must be a node's own, and so must the first (SHERD_EINVAL). Domains are read from version
 * 2 on. If the domain of one node is missing, all are ignored, and each node is its own domain
 * (trouble).
 *
 * Errors: SHERD_EOPEN, SHERD_EIO: no such folder or file; SHERD_EFORMAT: not a record, a version
 * above 2, an invalid domain, or no readable bytes; SHERD_ENOMEM. On failure *v is unchanged.
 */
int sherd__views_add(sherd__views *v, const char *dir, sherd_diag *d) SHERD_MUST;
/** Returns the coding of a job's operand; NULL: not in the record. */
const sherd__view_coded *sherd__view_coding(const sherd__views *v, uint64_t job);
/** Safe on a zeroed struct and when called twice. */
void sherd__views_fini(sherd__views *v);

/** Returns a hash that distinguishes bodies within one record; not cryptographic. */
uint64_t sherd__view_hash(const uint8_t *body, size_t len);
/** Copies the body of a complete block, info.len bytes, to out. SHERD_EFRAME if its parts are not
 *  consecutive. */
int sherd__view_body(const sherd__node_view *v, const sherd__view_block *b,
                     uint8_t *out) SHERD_MUST;

#endif
