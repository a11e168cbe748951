/*
 * A model: a network's layers and parameters with the recipe that it was trained by. Its file is an
 * .npz that numpy.load opens: the recipe's text (member "recipe", bytes) and the parameters "w1"
 * (inputs x outputs), "b1", "w2" and so on. One thread at a time may use a model.
 */
#ifndef SHERD_MODEL_H
#define SHERD_MODEL_H

#include "sherd/err.h"

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
/** Writes the model atomically; an earlier file survives every failure. SHERD_EOPEN, SHERD_EIO,
 *  SHERD_ENOMEM. */
SHERD_API int sherd_model_save(const sherd_model *m, const char *path, sherd_diag *d) SHERD_MUST;
/** NULL is allowed. */
SHERD_API void sherd_model_free(sherd_model *m);

#ifdef __cplusplus
}
#endif

#endif
