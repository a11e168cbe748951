/* State of one operation: made by open.c, computed and written by run.c. */
#ifndef LIB_OPERATION_OPERATION_H
#define LIB_OPERATION_OPERATION_H

#include "sherd/array.h"
#include "sherd/certificate.h"
#include "sherd/npy.h"
#include "sherd/operation.h"
#include "sherd/profile.h"
#include "store/file.h"

typedef struct sherd__operand {
    const char *name;  /* in messages */
    sherd_array *file; /* NULL: in the caller's memory */
    sherd_view view;
    sherd_profile *profile; /* this operation's own, or NULL */
} sherd__operand;

struct sherd_operation {
    sherd_operation_options o;
    sherd_op op;
    sherd_hooks quiet;           /* those of o, without progress: for all but the product */
    sherd_cluster_options nodes; /* if o.nodes is set */
    uint32_t nodes_count;        /* set by check_nodes */
    bool loopback;               /* set by check_nodes if o.nodes is set */
    sherd_product_options opt;
    sherd__operand in[2];
    unsigned in_len;
    size_t rows, cols; /* of the result */
    unsigned ndim;     /* of the result in a file, as in numpy */
    double *c, *own;   /* the result; own: memory that is freed */
    uint8_t seed[32];  /* what opt.seed points to if it was drawn here */
    sherd_meta *meta;  /* what opt.shuffles points into */
    sherd_meta_usage usage;
    sherd_npy_writer *writer;       /* of a .npy; or */
    sherd__file *text;              /* .csv */
    sherd_certificate *certificate; /* NULL: none is requested */
    double began, forecasting;      /* sherd__clock_s; seconds of it that the forecast took */

    bool ran;
    sherd_cluster *cluster;
    sherd_report report;
    bool forecast, checked, measured; /* which of these are set */
    sherd_forecast forecasted;
    sherd_check check;
    sherd_distance distance;
    bool written, certified;
    double seconds;
    uint64_t check_calls;
};

/** Draws the seed now if none was given, so that all calls derive the same values from it. */
void sherd__operation_settle_seed(sherd_operation *w);
/** Returns the result, of which the values may not be there yet. */
sherd_view sherd__operation_result(const sherd_operation *w);
/** Returns whether it is a product, as opposed to an element-wise operation. */
bool sherd__operation_is_product(const sherd_operation *w);

#endif
