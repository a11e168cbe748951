/* A part of sherd/certificate.h that is not public. */
#ifndef LIB_CERTIFICATE_H
#define LIB_CERTIFICATE_H

#include <stdbool.h>

#include "sherd/certificate.h"

/** sherd_certificate_commit that writes to *published (may be NULL) whether the file exists, which
 *  it may also do after an error (store/file.h, sherd__file_publish). */
int sherd__certificate_publish(sherd_certificate *c, bool *published, sherd_diag *d) SHERD_MUST;

#endif
