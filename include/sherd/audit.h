/*
 * Audits: what did the nodes learn? An audit takes what was sent to each node, from records or from
 * a simulation, and attacks it as single nodes and coalitions of domains could. Each figure comes
 * with its value by chance. Tests are judged together (Holm's procedure): the probability that an
 * audit of a scheme that hides perfectly flags anything is sherd_audit_info.family.
 *
 * Who learns it: a report and its page show parts of the data. Nothing is sent anywhere.
 */
#ifndef SHERD_AUDIT_H
#define SHERD_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/hooks.h"
#include "sherd/mat.h"
#include "sherd/scheme.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The report of an audit. */
typedef struct sherd_audit sherd_audit;

/** Forms in which an operand A is sent to nodes. */
typedef enum sherd_audit_form {
    SHERD_AUDIT_PERMUTE_PUBLISHED, /* permute as published: values with their row indices; their
                                      order is not used */
    SHERD_AUDIT_PERMUTE_SINGLE,    /* permute in groups of one column: non-zero values in row order,
                                      without indices; columns in random order */
    SHERD_AUDIT_PERMUTE,           /* permute, one group for each node: its columns, aligned */
    SHERD_AUDIT_PLAIN,             /* plain: rows */
    SHERD_AUDIT_SHARE              /* share: sherd_audit_sketch only */
} sherd_audit_form;

/**
 * What the auditor and the attacker know, and limits. Zero-initialise, set size, then set what
 * differs. Views with data NULL are not known; views are read during the call only.
 *
 * data and labels only serve to count what attacks get right; but coded operands are also attacked
 * with data and right as known plaintext.
 */
typedef struct sherd_audit_options {
    size_t size;            /* sizeof(sherd_audit_options) */
    sherd_view data;        /* the operand A. In a simulation, NULL selects 20000 generated digits
                               with their labels, and 10000 other digits as public_data if that is
                               NULL */
    sherd_view right;       /* the operand B */
    sherd_view labels;      /* a label for each row of A: n x 1 or 1 x n whole numbers from 0 to
                               255 */
    sherd_view public_data; /* the attacker's data: other rows of the same kind */
    sherd_view public_labels;
    uint64_t draw;       /* selects a random draw of exposures and coalitions */
    uint32_t colluding;  /* T: coalitions of T and of T + 1 domains are attacked. Of shares: the T
                            of the recorded run, if the record does not state it. 0: 1 */
    uint32_t spare;      /* of shares: the S of the recorded run, if the record does not state it */
    uint32_t coalitions; /* maximum number of coalitions of each size; if there are more, a random
                            sample is drawn; 0: 200 */
    bool nodes_only;     /* values in clear: no coalitions are attacked */
    uint32_t encodings;  /* of coded operands: maximum number of right operands or tiles of a
                            product, and of products, that are attacked; the time grows with its
                            square; 0: 8 */
    size_t rows;   /* maximum number of rows of a node's view, and of public data, that attacks use;
                    0: 10000 */
    uint32_t show; /* number, from 1, of the node whose pictures the page shows; 0: node 3, if
                          there is one */
    sherd_hooks hooks; /* interrupted is called after each attack, which may take seconds; progress
                          counts the attacks of each phase; log is not called */
    sherd_code code;   /* of shares: the code of the recorded run, if the record does not state it.
                          AUTO: INNER if shares have fewer columns than `data`, else LAGRANGE */
} sherd_audit_options;

/**
 * Audits a run from its records: the folder of a coordinator's record (sherd_cluster_options), or
 * the folders of records that nodes made. Of several products the one that moved the most bytes is
 * attacked; masks of coded products are compared with those of the others. Values in clear are
 * attacked rather than shares, but products of ones, which measure links, are left out: a note says
 * how many.
 *
 * The caller frees *out with sherd_audit_free; it is NULL on failure. Errors: SHERD_EOPEN,
 * SHERD_EIO; SHERD_EFORMAT: not a record, or invalid labels; SHERD_ESHAPE: views do not belong
 * together; SHERD_EINVAL: data that are not the recorded ones, labels without data, a node that
 * does not exist; SHERD_ENOMEM; SHERD_EINTERRUPTED; SHERD_EINTERNAL: a negative control was not
 * flagged, so the audit proves nothing. A record that was cut off is used up to its end
 * (sherd_audit_info.cut).
 */
SHERD_API int sherd_audit_records(sherd_audit **out, const char *const *folders, size_t folders_len,
                                  const sherd_audit_options *opt, sherd_diag *d) SHERD_MUST;
/**
 * Audits what `nodes` nodes would see of opt->data in a form, without running anything. Errors as
 * above, and SHERD_EINVAL: no nodes; SHERD_EUNSUPPORTED: SHERD_AUDIT_SHARE.
 */
SHERD_API int sherd_audit_simulate(sherd_audit **out, sherd_audit_form form, uint32_t nodes,
                                   const sherd_audit_options *opt, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
SHERD_API void sherd_audit_free(sherd_audit *a);

/* ---- the report ------------------------------------------------------------------------------ */

/** What was audited, and the result. Texts borrow from the report. */
typedef struct sherd_audit_info {
    size_t size;         /* sizeof(sherd_audit_info), set by the caller */
    const char *subject; /* what was audited, for people */
    const char *form;    /* how values were sent */
    uint64_t rows, cols; /* shape of A; 0: not known */
    uint32_t nodes, domains;
    bool domains_known;       /* the record assigns nodes to domains; otherwise each node is a
                                 domain */
    bool cut;                 /* the record is incomplete */
    uint32_t domains_covered; /* domains with complete records */
    const char *reach;        /* if `cut`: what the findings, or their absence, cover; otherwise
                                 NULL */
    uint32_t colluding;       /* T */
    uint64_t public_rows;     /* 0: no side information */
    bool truth;               /* data was given, to count what attacks get right */
    bool labels;              /* labels of data and of public data were given */
    double family;            /* probability of a false flag anywhere in the audit */
    uint64_t tests;           /* findings with a p-value, without controls */
    uint64_t flagged;         /* findings beyond chance, without controls; 0: nothing was found */
    uint32_t left_out;        /* number of the last entries of sherd_audit_unseen_at that this audit
                                 left out */
} sherd_audit_info;

/** Fills *out. SHERD_EINVAL: its size is not set. */
SHERD_API int sherd_audit_get(const sherd_audit *a, sherd_audit_info *out,
                              sherd_diag *d) SHERD_MUST;
SHERD_API const sherd_field *sherd_audit_info_fields(size_t *count);

/** One attack on one subject by one node or coalition. Numbers that do not apply are NAN. */
typedef struct sherd_audit_finding {
    const char *test;      /* a fixed word: "verbatim", "columns", "labels", "rebuilding",
                              "uniformity", "coalition", "game", "control" ... */
    const char *statistic; /* meaning of `value`: "chi2 of 256 bins", "advantage" */
    char subject[64];      /* attacked data: "A", "A - B", "A, prime 5931641" */
    char who[96];          /* "node-2", "domains 1, 4" */
    uint32_t size;         /* nodes or domains that attacked together; 0: the scheme as a whole */
    const char *unit;      /* "node" or "domain": what `size` counts; NULL: size is 0 */
    double value;          /* value of the statistic */
    double chance;         /* expected value by chance */
    double low, high;      /* confidence interval of `value` (99 %) */
    double ln_p;           /* ln of the p-value, which may be beyond the range of a double; NAN: a
                              measurement, not a test */
    double ln_threshold;   /* ln of the bound for ln_p */
    bool flagged;          /* the finding is beyond chance */
    bool control;          /* it is expected to be flagged: a scheme that is broken on purpose, or a
                              coalition of more than T domains */
    char sentence[288];    /* the finding in words */
} sherd_audit_finding;

/** Returns the i-th finding, which belongs to the report; NULL after the last. */
SHERD_API const sherd_audit_finding *sherd_audit_finding_at(const sherd_audit *a, size_t i);
SHERD_API const sherd_field *sherd_audit_finding_fields(size_t *count);

/** Adversaries of one size: how many there are and how many were attacked. */
typedef struct sherd_audit_scope {
    uint32_t size;
    const char *unit; /* "node" or "domain" */
    uint32_t attacked;
    uint64_t of;         /* adversaries of this size; UINT64_MAX: more than that */
    uint64_t first, end; /* indices of its findings: first to end - 1 */
} sherd_audit_scope;

/** Returns the i-th scope, which belongs to the report; NULL after the last. */
SHERD_API const sherd_audit_scope *sherd_audit_scope_at(const sherd_audit *a, size_t i);
SHERD_API const sherd_field *sherd_audit_scope_fields(size_t *count);

/** Places of figures beside the scopes. */
enum {
    SHERD_AUDIT_SENT = -1, /* what each node was sent */
    SHERD_AUDIT_WHOLE = -2 /* the scheme as a whole */
};

/** Findings of one test and statistic by all adversaries of a scope, without controls. */
typedef struct sherd_audit_figure {
    int32_t scope; /* index of the scope, SHERD_AUDIT_SENT or SHERD_AUDIT_WHOLE */
    const char *test, *statistic;
    uint32_t count; /* number of findings */
    uint64_t worst; /* index of the worst finding: the one with the lowest p-value or, of
                       measurements, with the largest value */
    double median;  /* median of the findings' values */
    bool fraction;  /* values are fractions of 1, "0.25" is 25 % */
    bool flagged;   /* at least one finding is flagged */
} sherd_audit_figure;

/** Returns the i-th figure: SHERD_AUDIT_SENT, then scope by scope, then SHERD_AUDIT_WHOLE; NULL
 *  after the last. */
SHERD_API const sherd_audit_figure *sherd_audit_figure_at(const sherd_audit *a, size_t i);
SHERD_API const sherd_field *sherd_audit_figure_fields(size_t *count);

/** A scheme that was broken on purpose. The audit must flag it, because an audit that cannot fail
 *  proves nothing. */
typedef struct sherd_audit_control {
    const char *name; /* "mask reuse" */
    const char *who;  /* NULL: the scheme was made for the audit; otherwise the members of a
                        coalition of T + 1 domains of the record */
    double ln_p;      /* ln of the smallest p-value */
    double advantage; /* advantage in a distinguishing game; NAN: no game was played */
    bool flagged;
} sherd_audit_control;

/** Returns the i-th control that was run; NULL after the last. */
SHERD_API const sherd_audit_control *sherd_audit_control_at(const sherd_audit *a, size_t i);
SHERD_API const sherd_field *sherd_audit_control_fields(size_t *count);

/** Some rows of A as one node knows them. Made by the library, which may add members at the end. */
typedef struct sherd_audit_picture {
    const char *name;      /* a fixed word: "truth": the rows; "sent": the values that the node was
                              sent, in their columns; "placed": the same values in the columns that
                              an attacker infers; "rebuilt": the rows that an attacker rebuilds from
                              them and from the public data */
    char caption[128];     /* the same in words, with the name of the node */
    size_t rows, cols;     /* cols: those of A */
    const uint8_t *pixels; /* rows x cols, row by row: 255 is the largest value; 0 is also a
                              value that is not known. Of coded operands, "sent" and "placed" are
                              residues, and 0 to 255 is their range */
} sherd_audit_picture;

/** Returns the i-th picture of the node sherd_audit_options.show, which belongs to the report; NULL
 *  after the last. There are four, or none: without data or public_data, if no rows can be
 *  distinguished (SHERD_AUDIT_PERMUTE_SINGLE), and of element-wise operations. */
SHERD_API const sherd_audit_picture *sherd_audit_picture_at(const sherd_audit *a, size_t i);

/** Returns the i-th note about the audit, for people; NULL after the last. */
SHERD_API const char *sherd_audit_warning_at(const sherd_audit *a, size_t i);
/** Returns the i-th thing that was not seen: what no audit sees, then what this one left out; NULL
 *  after the last. */
SHERD_API const char *sherd_audit_unseen_at(const sherd_audit *a, size_t i);

/**
 * Writes the whole report as a JSON object, under the names of the fields: those of
 * sherd_audit_info, then coalitions (the scopes), findings, warnings and unseen. Numbers that do
 * not apply are null. *text is valid until the next call for this report and until
 * sherd_audit_free. SHERD_ENOMEM.
 */
SHERD_API int sherd_audit_json(sherd_audit *a, const char **text, sherd_diag *d) SHERD_MUST;
/**
 * Writes the whole report as an HTML page that loads nothing. width: columns of A in a line of a
 * picture, if it divides their number; 0: a square, if that is possible. *text is valid until the
 * next call for this report and until sherd_audit_free. SHERD_ENOMEM.
 */
SHERD_API int sherd_audit_html(sherd_audit *a, size_t width, const char **text,
                               sherd_diag *d) SHERD_MUST;
/** Writes the page to a file that only its owner may read (mode 0600), since it shows data. An
 *  earlier file survives every failure. SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM. */
SHERD_API int sherd_audit_html_save(sherd_audit *a, size_t width, const char *path,
                                    sherd_diag *d) SHERD_MUST;

/* ---- in a second ----------------------------------------------------------------------------- */

/** What one node makes of generated digits, with other digits as public data. NAN: not measured. */
typedef struct sherd_audit_sketched {
    size_t size;    /* sizeof(sherd_audit_sketched), set by the caller */
    double columns; /* fraction of its columns that it recognises */
    double columns_chance;
    double labels; /* fraction of the labels that it reads */
    double labels_chance;
    double rebuilt_r2; /* R^2 of whole rows that it rebuilds */
    double rebuilt_r2_chance;
} sherd_audit_sketched;

/**
 * Attacks one of `nodes` nodes with the strongest attacks only, on small samples: 4000 digits, 4000
 * public ones, 300 of them tested. Takes about half a second. SHERD_AUDIT_SHARE needs three nodes:
 * with fewer nothing is measured. SHERD_EINVAL: no nodes, no form, or the size is not set;
 * SHERD_ENOMEM.
 */
SHERD_API int sherd_audit_sketch(sherd_audit_form form, uint32_t nodes, sherd_audit_sketched *out,
                                 sherd_diag *d) SHERD_MUST;
SHERD_API const sherd_field *sherd_audit_sketched_fields(size_t *count);

#ifdef __cplusplus
}
#endif

#endif
