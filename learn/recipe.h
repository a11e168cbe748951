/*
 * A recipe: what is trained, on which kind of data, and how. Its text form is `key = value` lines
 * (docs/TRAINING.md lists the keys); the part that describes the network is also what nodes are
 * sent and what models and checkpoints carry. Nothing in it is secret or specific to a machine.
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
/** A longer text is refused. */
#define SHERD__RECIPE_BYTES_MAX 65536u

/** Where examples come from. */
typedef enum sherd__data_kind {
    SHERD__DATA_IDX = 1, /* a folder of IDX files; without one, the embedded digits */
    SHERD__DATA_FILE,    /* .npy, .npz, .csv */
    SHERD__DATA_DIGITS,  /* learn/digits.h */
    SHERD__DATA_SPIRAL,  /* learn/generate.h, and so on */
    SHERD__DATA_PARABOLA,
    SHERD__DATA_RANDOM
} sherd__data_kind;

/** Which rows make a batch. All of it is a function of the seed and the step's number. */
typedef enum sherd__order {
    SHERD__ORDER_GIVEN = 1, /* as the data lie */
    SHERD__ORDER_SHUFFLED,  /* all rows shuffled anew for each epoch */
    SHERD__ORDER_BATCHES,   /* rows shuffled once; the batches, anew for each epoch: what data that
                               stay at nodes allow */
    SHERD__ORDER_DRAWN      /* each row of a batch drawn from all, with replacement */
} sherd__order;

typedef enum sherd__recipe_part {
    SHERD__RECIPE_NETWORK = 1, /* input, layers, loss and what belongs to them */
    SHERD__RECIPE_ALL
} sherd__recipe_part;

/** Plain data; may be copied. Numbers are as the text has them, defaults filled in. */
typedef struct sherd__recipe {
    /* the network */
    sherd__form in;
    sherd__layer_spec layers[SHERD__RECIPE_LAYERS_MAX];
    size_t len;
    sherd__loss loss;
    double l2;
    bool bias_total;          /* bias_gradient = total (learn/network.h) */
    bool validation_unbiased; /* validation_biases = no: accuracy is measured without biases */
    sherd_dtype precision;    /* of parameters and passes: SHERD_F64, or SHERD_F32 (on one machine
                                 in floats) */
    /* everything else */
    sherd__data_kind data;
    size_t examples;      /* how many are generated, or the first so many of a file; 0: all */
    bool target_values;   /* targets = values: of files, the last columns are numbers to meet; else
                             the last one is a label */
    char label[64];       /* of .csv: the target's column by its name in the header; "": the last */
    size_t classes;       /* spiral, random: as the generator needs; else 0 */
    double divide_inputs; /* every input is divided by it; 1: nothing is done */
    double holdout;       /* fraction of the examples that validation takes away; 0: none */
    double weights;       /* standard deviation of initial weights; 0: he */
    size_t batch;         /* 0: all examples */
    sherd__order order;
    uint64_t epochs, steps; /* how long: exactly one of them is above 0 */
    uint64_t report_every;  /* epochs between two lines of figures */
    sherd__optimiser_spec optimiser;
    sherd__schedule schedule;
} sherd__recipe;

/**
 * Reads a text of `len` bytes. `where` names it in messages, which give the line too. Part NETWORK
 * knows only the keys of the network, part ALL needs both. *out is as it was on failure.
 * SHERD_EFORMAT: an unknown key (the nearest known one is named), one twice or missing, a value
 * that is not what the key takes, bytes that are no text.
 */
int sherd__recipe_parse(sherd__recipe *out, const char *text, size_t len, const char *where,
                        sherd__recipe_part part, sherd_diag *d) SHERD_MUST;
/** Appends the canonical text: parsed again it gives the same recipe, and equal recipes give equal
 *  texts. SHERD_ENOMEM, or SHERD_EINVAL where the buffer's cap is too small. */
int sherd__recipe_print(const sherd__recipe *r, sherd__recipe_part part, sherd_buf *out) SHERD_MUST;

/**
 * The recipe's network for batches of up to `batch` examples; *out is the caller's
 * (sherd__network_free). Errors of sherd__network_new.
 */
int sherd__recipe_network(const sherd__recipe *r, size_t batch, sherd__network **out,
                          sherd_diag *d) SHERD_MUST;
/** The same, with undefined parameters: however large, it takes no time. */
int sherd__recipe_network_unset(const sherd__recipe *r, size_t batch, sherd__network **out,
                                sherd_diag *d) SHERD_MUST;
/** sherd__network_weigh of that network. */
int sherd__recipe_weigh(const sherd__recipe *r, size_t batch, sherd__network_weight *out,
                        sherd_diag *d) SHERD_MUST;

/** "idx", "spiral", ...; NULL for a number that is none. */
const char *sherd__data_kind_name(sherd__data_kind kind);
/** "given", "shuffled", "batches", "drawn"; NULL for a number that is none. */
const char *sherd__order_name(sherd__order order);

/**
 * Members of a model's .npz, one for each layer with parameters, counted from 1 in the order of
 * layers: "w1" (rows x cols) and "b1" (cols). Writes the name of layer i's weights or biases.
 * False for a layer without parameters.
 */
bool sherd__recipe_member(const sherd__network *n, size_t i, bool biases, char name[16]);

#endif
