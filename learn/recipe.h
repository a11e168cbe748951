/*
 * A recipe describes a training: the network, the kind of data, and the method. Its text form is
 * `key = value` lines (docs/TRAINING.md lists the keys). The part that describes the network is
 * also sent to nodes and stored in models and checkpoints. It contains nothing secret and nothing
 * specific to a machine.
 *
 *     input = 28 x 28 x 1
 *     layer = dense 128
 *     layer = sigmoid
 *     ...
 */
#ifndef LEARN_RECIPE_H
#define LEARN_RECIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"
#include "learn/network.h"
#include "learn/optimiser.h"

#define SHERD__RECIPE_LAYERS_MAX 64u
/** Longer texts are refused. */
#define SHERD__RECIPE_BYTES_MAX 65536u
/** Size of the text of a list of names, with its end. */
#define SHERD__RECIPE_LIST 4096u

/** Source of the examples. */
typedef enum sherd__data_kind {
    SHERD__DATA_IDX = 1, /* a folder of IDX files; without one, the embedded digits */
    SHERD__DATA_FILE,    /* .npy, .npz, .csv */
    SHERD__DATA_DIGITS,  /* learn/digits.h */
    SHERD__DATA_SPIRAL,  /* learn/generate.h, and so on */
    SHERD__DATA_PARABOLA,
    SHERD__DATA_RANDOM
} sherd__data_kind;

/** Which rows make a batch. The order depends only on the seed and the step's number. */
typedef enum sherd__order {
    SHERD__ORDER_GIVEN = 1, /* in the order of the data */
    SHERD__ORDER_SHUFFLED,  /* all rows shuffled again for each epoch */
    SHERD__ORDER_BATCHES,   /* rows shuffled once, and the order of the batches for each epoch:
                               possible with data that stay at nodes */
    SHERD__ORDER_DRAWN      /* each row of a batch drawn from all, with replacement */
} sherd__order;

typedef enum sherd__recipe_part {
    SHERD__RECIPE_NETWORK = 1, /* input, layers, loss and their options */
    SHERD__RECIPE_ALL
} sherd__recipe_part;

/** Plain data; may be copied. Numbers are those of the text, with defaults filled in. */
typedef struct sherd__recipe {
    /* the network */
    sherd__tensor_shape in;
    sherd__layer_spec layers[SHERD__RECIPE_LAYERS_MAX];
    size_t len;
    sherd__loss loss;
    double l2;
    bool bias_total;          /* bias_gradient = total (learn/network.h) */
    bool validation_unbiased; /* validation_biases = no: accuracy is measured without biases */
    sherd_dtype precision;    /* of parameters and passes: SHERD_F64, or SHERD_F32 (on one machine
                                 in floats) */
    /* all other settings */
    sherd__data_kind data;
    size_t examples;    /* how many are generated, or how many of a file are used, from the first;
                             0: all */
    bool target_values; /* targets = values: the last columns of a file are target values; else
                             the last one is a label */
    char label[64];     /* of .csv: name in the header of the target's column; "": the last
                             column */
    char columns[SHERD__RECIPE_LIST]; /* of .csv: names of the inputs in the header, as "a, b"; "":
                                         all columns that are not targets */
    char class_names[SHERD__RECIPE_LIST]; /* names of the classes in the order of the outputs; "":
                                             those of the data */
    size_t classes;                       /* spiral, random: as the generator needs; else 0 */
    double divide_inputs;                 /* divisor of every input; 1: inputs are unchanged */
    bool standardise; /* then shift and scale inputs by mean and deviation of training rows */
    double holdout;   /* fraction of the examples set aside for validation; 0: none */
    double weights;   /* standard deviation of initial weights; 0: the keyword `he` */
    size_t batch;     /* 0: all examples */
    sherd__order order;
    uint64_t epochs, steps; /* length of training: exactly one of them is above 0 */
    uint64_t report_every;  /* epochs or, with report_steps, steps between two reports */
    bool report_steps;
    uint64_t patience; /* end after this number of reports without a lower loss of validation; 0:
                          never */
    sherd__optimiser_spec optimiser;
    sherd__schedule schedule;
} sherd__recipe;

/**
 * Parses a text of `len` bytes. Error messages contain `where` and the line. Part NETWORK accepts
 * only the keys of the network; part ALL needs both parts. *out is unchanged on failure.
 * SHERD_EFORMAT: an unknown key (the nearest known one is named), a key twice or missing, an
 * invalid value of a key, bytes that are no text.
 */
int sherd__recipe_parse(sherd__recipe *out, const char *text, size_t len, const char *where,
                        sherd__recipe_part part, sherd_diag *d) SHERD_MUST;
/** Sets one key to a value as in the text, as sherd_recipe_set specifies. Error messages contain
 *  `where`. */
int sherd__recipe_set(sherd__recipe *r, const char *key, const char *text, const char *where,
                      sherd_diag *d) SHERD_MUST;
/** Appends the canonical text: parsing it gives the same recipe, and equal recipes give equal
 *  texts. SHERD_ENOMEM, or SHERD_EINVAL if the buffer's cap is too small. */
int sherd__recipe_print(const sherd__recipe *r, sherd__recipe_part part,
                        sherd__buf *out) SHERD_MUST;

/**
 * Creates the recipe's network for batches of up to `batch` examples. The caller frees *out with
 * sherd__network_free. Errors of sherd__network_new.
 */
int sherd__recipe_network(const sherd__recipe *r, size_t batch, sherd__network **out,
                          sherd_diag *d) SHERD_MUST;
/** As sherd__recipe_network, with undefined parameters: takes no time, however large the
 *  network. */
int sherd__recipe_network_unset(const sherd__recipe *r, size_t batch, sherd__network **out,
                                sherd_diag *d) SHERD_MUST;
/** Calls sherd__network_shapes for that network. */
int sherd__recipe_shapes(const sherd__recipe *r, sherd__network **out, sherd_diag *d) SHERD_MUST;
/** Calls sherd__network_measure for that network. */
int sherd__recipe_measure(const sherd__recipe *r, size_t batch, sherd__network_size *out,
                          sherd_diag *d) SHERD_MUST;

/** Returns "idx", "spiral", ...; NULL for an unknown number. */
const char *sherd__data_kind_name(sherd__data_kind kind);
/** Returns "given", "shuffled", "batches" or "drawn"; NULL for an unknown number. */
const char *sherd__order_name(sherd__order order);

/**
 * Writes the name in a model's .npz of layer i's weights or biases. Layers with parameters are
 * counted from 1 in the order of layers: "w1" (rows x cols) and "b1" (cols). Returns false for a
 * layer without parameters.
 */
bool sherd__recipe_member(const sherd__network *n, size_t i, bool biases, char name[16]);

#endif
