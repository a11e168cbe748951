/*
 * A model: a network's layers and parameters with the recipe that it was trained by. Its file is an
 * .npz that numpy.load opens: the recipe's text (member "recipe", bytes) and the parameters "w1"
 * (inputs x outputs), "b1", "w2" and so on. If they are known, it also has names: of the columns
 * that are inputs ("columns"), of the target's ("target") and of the classes in the order of the
 * outputs ("classes"), each as text with a name in each line; and, if the recipe standardises,
 * "input_mean" and "input_deviation". One thread at a time may use a model.
 */
#ifndef SHERD_MODEL_H
#define SHERD_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sherd/cluster.h"
#include "sherd/data.h"
#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/hooks.h"
#include "sherd/mat.h"
#include "sherd/multiplier.h"
#include "sherd/product.h"
#include "sherd/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sherd_model sherd_model;

/**
 * Reads a model. The caller frees *out with sherd_model_free; it is NULL on failure. SHERD_EOPEN,
 * SHERD_EIO, SHERD_EFORMAT (not a model, or a member that is missing), SHERD_ESHAPE (a member of
 * another shape than the recipe's network), SHERD_ERANGE (a parameter that is not finite),
 * SHERD_ENOMEM.
 */
SHERD_API int sherd_model_load(sherd_model **out, const char *path, sherd_diag *d) SHERD_MUST;
/** Reads parameters alone, members w1, b1, ... of an .npz, as a model of recipe r, which is copied.
 *  Otherwise as sherd_model_load. */
SHERD_API int sherd_model_load_parameters(sherd_model **out, const sherd_recipe *r,
                                          const char *path, sherd_diag *d) SHERD_MUST;
/** Writes the model atomically; an earlier file survives every failure. SHERD_EOPEN, SHERD_EIO,
 *  SHERD_ENOMEM. */
SHERD_API int sherd_model_save(const sherd_model *m, const char *path, sherd_diag *d) SHERD_MUST;

/**
 * The file of a model that does not exist yet. It is opened before a long training, and holds the
 * space that the model needs, so that a full disk or a missing folder is not found at the end only.
 * An earlier file at the path is unchanged until the new one is complete; without a save, nothing
 * is left behind. One thread at a time may use it.
 */
typedef struct sherd_model_file sherd_model_file;

/** Reserves space for a model of the size of m. The caller closes *out, which is NULL on failure.
 *  SHERD_EOPEN; SHERD_EIO: no room; SHERD_EUNSUPPORTED: a pipe or device; SHERD_ENOMEM. */
SHERD_API int sherd_model_file_open(sherd_model_file **out, const sherd_model *m, const char *path,
                                    sherd_diag *d) SHERD_MUST;
/** Writes the model as sherd_model_save does. SHERD_EINVAL: this was called before, also if it
 *  failed; otherwise the errors of sherd_model_save. */
SHERD_API int sherd_model_file_save(sherd_model_file *f, const sherd_model *m,
                                    sherd_diag *d) SHERD_MUST;
/** Gives the space back if nothing was saved. Does nothing for NULL. */
SHERD_API void sherd_model_file_close(sherd_model_file *f);

/** Does nothing for NULL, and for the model of a training (sherd_training_model). */
SHERD_API void sherd_model_free(sherd_model *m);

/** Returns the recipe, which belongs to the model. */
SHERD_API const sherd_recipe *sherd_model_recipe(const sherd_model *m);
/** Returns the numbers of one example, and of one output. */
SHERD_API size_t sherd_model_inputs(const sherd_model *m);
SHERD_API size_t sherd_model_outputs(const sherd_model *m);
/** Returns the name of class i, which is that of output i; NULL after the last, and if classes are
 *  numbers. Valid until sherd_model_free. */
SHERD_API const char *sherd_model_class_name(const sherd_model *m, size_t i);
/** Returns the name of input i in the header of the training data; NULL after the last, and if they
 *  had none. Valid until sherd_model_free. */
SHERD_API const char *sherd_model_input_name(const sherd_model *m, size_t i);
/** Returns the name of the i-th array of parameters: "w1", "b1", "w2", ...; NULL after the last.
 *  Layers with parameters are counted from 1. Valid until sherd_model_free. */
SHERD_API const char *sherd_model_parameter_name(const sherd_model *m, size_t i);
/** Returns an array of parameters, in the model's memory: weights as inputs x outputs (of a
 *  convolution, window * window * channels x outputs), biases as one row. No data (NULL) if there
 *  is no such name. */
SHERD_API sherd_view sherd_model_parameter_find(const sherd_model *m, const char *name);

/**
 * Loads inputs for a prediction by m, as the training part (sherd_data_inputs lists the kinds of
 * files). The columns of a .csv with a header are found by the names that the model has, in any
 * order; other columns are not used, and the target may be missing. Its labels may be names of the
 * model's classes. Inputs are divided and standardised as in the training. The caller frees *out
 * with sherd_data_free; it is NULL on failure. Errors as of sherd_data_load.
 */
SHERD_API int sherd_model_inputs_load(sherd_data **out, const sherd_model *m, const char *path,
                                      sherd_diag *d) SHERD_MUST;

/** Zero-initialise, set size, then set what differs. */
typedef struct sherd_predict_options {
    size_t size;            /* sizeof(sherd_predict_options) */
    sherd_hooks hooks;      /* progress counts rows; all NULL: those of the cluster */
    sherd_cluster *cluster; /* the nodes that compute the products; NULL: this machine computes
                               them */
    const sherd_product_options *products; /* scheme, exact, bits, ...; without hooks, those above
                                              are used. NULL: floats, permute over nodes. The
                                              schemes share1 and blind are refused, since the
                                              weights would be sent in clear */
    const sherd_multiplier *by; /* a multiplier that computes the products, instead of cluster and
                                   products; NULL: none */
    bool elementwise_at_nodes;  /* nodes compute sigmoid, tanh and ReLU too; not in private
                                   schemes */
    bool check;       /* also compute in fixed point on this machine, and compare bit for bit; needs
                         cluster and fixed point */
    bool divided;     /* x has already been divided and standardised as the recipe states
                         (sherd_data_x); false: this call does it */
    const char *name; /* name of x in messages; NULL: "x" */
    const uint32_t *labels; /* label of each row of x, for the report's accuracy; NULL: not known */
} sherd_predict_options;

typedef struct sherd_predict_report {
    size_t size; /* sizeof(sherd_predict_report), set by the caller */
    uint64_t rows, outputs;
    uint32_t nodes;     /* number of nodes; 0: computed on this machine, or by a multiplier */
    const char *scheme; /* scheme of the products; NULL without nodes */
    uint32_t bits;      /* width of fixed point; 0: floats */
    double seconds;
    uint64_t bytes_out, bytes_in; /* bytes sent to and received from nodes by this call */
    bool checked;                 /* the outputs equal those computed on this machine */
    const char *sees;             /* what nodes see, in one sentence without full stop */
    double accuracy;              /* fraction of rows whose largest output is at their label; NAN:
                                     there were no labels */
} sherd_predict_report;

/**
 * Computes the outputs of the last layer for each row of x: y is x.rows x sherd_model_outputs,
 * row-major with ldy >= outputs. opt NULL: here, in floats. Rows are processed in pieces of 1000,
 * each of which has one exponent in fixed point, so that predictions by nodes and here have the
 * same bits.
 *
 * Errors: SHERD_ESHAPE; SHERD_ERANGE (x is not finite); SHERD_EDIFFERS (check); SHERD_EINVAL,
 * SHERD_EUNSUPPORTED (options that cannot be combined); SHERD_EINTERRUPTED; SHERD_ENOMEM; errors of
 * sherd_multiply. On failure y's contents are undefined. r may be NULL. Who learns it: what the
 * scheme leaves open of x, of the weights and of what is between layers.
 */
SHERD_API int sherd_model_predict(sherd_model *m, sherd_view x, double *y, size_t ldy,
                                  const sherd_predict_options *opt, sherd_predict_report *r,
                                  sherd_diag *d) SHERD_MUST;
/**
 * Writes predictions, an output of m in each row of y, to a file, which appears as a whole: y
 * itself, or with `labels` the class of each row (sherd_predict_labels). A path that ends in .csv
 * is written as text. Its header names the columns: logit_CLASS for an output that is the input of
 * the softmax, output_CLASS for another one (logit0, output0 without names of classes), the name
 * of the target if it is one value; with `labels` the target. Any other path is written as .npy.
 * SHERD_ESHAPE: y has another number of columns; SHERD_EOPEN, SHERD_EIO, SHERD_ENOMEM.
 */
SHERD_API int sherd_model_predictions_save(const sherd_model *m, const char *path, sherd_view y,
                                           bool labels, sherd_diag *d) SHERD_MUST;
/** Counts predictions: counts[i * outputs + j], all of which are set, is the number of rows with
 *  label i for which j was predicted. Rows with a label or a prediction that is not below `outputs`
 *  are not counted. */
SHERD_API void sherd_predict_confusion(const uint32_t *labels, const uint32_t *predicted,
                                       size_t rows, size_t outputs, uint64_t *counts);
/** Writes the index of the largest number of each row of outputs, the first of equal ones: the
 *  class that a network trained on labels predicts. */
SHERD_API void sherd_predict_labels(const double *y, size_t ldy, size_t rows, size_t outputs,
                                    uint32_t *labels);
/** Checks options before a cluster is opened: returns the error that sherd_model_predict returns
 *  for  them with a cluster. */
SHERD_API int sherd_model_predict_check(const sherd_model *m, const sherd_predict_options *opt,
                                        sherd_diag *d) SHERD_MUST;
SHERD_API const sherd_field *sherd_predict_report_fields(size_t *count);

#ifdef __cplusplus
}
#endif

#endif
