/*
 * The attacks on clear values (clear.h), run on shares. They must get what chance gives: that they
 * do not under a scheme that hides, and do under one that does not, is what makes their figures
 * comparable. What is special to codes (null spaces, reuse, games) is in stats.h.
 */
#ifndef AUDIT_CODED_H
#define AUDIT_CODED_H

#include "audit/clear.h"

/**
 * Attacks share `share` of seen (modulo its first prime) as if it were values: verbatim entries,
 * zero mask, columns recognised (of 96, since there are as many as A has), labels, rows. Row r of a
 * share has to do with row r of every block, so what needs rows is counted for each block of A.
 * truth, pub and g as for sherd__audit_clear. SHERD_ENOMEM, SHERD_ESHAPE.
 */
int sherd__audit_coded(sherd__findings *l, sherd__gallery *g, const sherd__seen *seen,
                       uint32_t share, const char *who, const sherd__truth *truth,
                       const sherd__public *pub, const sherd__clear_options *opt,
                       sherd_diag *d) SHERD_MUST;

#endif
