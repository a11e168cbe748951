/* Converts a certificate, without its signature, to a JSON object and back. */
#ifndef STORE_CERTIFICATE_JSON_H
#define STORE_CERTIFICATE_JSON_H

#include <jansson.h>

#include "store/certificate.h"

/** Returns a new reference in *out. Errors: SHERD_EINVAL, naming the member that is out of range;
 *  SHERD_ENOMEM. */
int sherd__certificate_to_json(const sherd__certificate *c, json_t **out, sherd_diag *d) SHERD_MUST;
/** Fills *out except the signature. Errors: SHERD_EFORMAT, naming the member; SHERD_EVERSION. */
int sherd__certificate_from_json(sherd__certificate *out, const json_t *root, const char *where,
                                 sherd_diag *d) SHERD_MUST;

#endif
