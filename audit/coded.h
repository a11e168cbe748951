/*
 * The attacks on clear values (clear.h), run on shares. They must succeed no more often than by
 * chance. Their failure under a scheme that hides, and their success under one that does not, makes
 * their figures comparable. Attacks specific to codes (null spaces, reuse, games) are in stats.h.
 */
#ifndef AUDIT_CODED_H
#define AUDIT_CODED_H

#include "audit/clear.h"

/**
 * Attacks share `share` of seen (modulo its first prime) as if it contained values: verbatim
 * entries, zero mask, columns recognised (of 96, since there are as many as A has), labels, rows.
 * Row r of a share depends on row r of every block, so attacks that need rows are counted for each
 * block of A. SHERD_ENOMEM, SHERD_ESHAPE.
 */
int sherd__audit_coded(const sherd__attack *by, const sherd__seen *seen, uint32_t share,
                       const sherd__clear_options *opt, sherd_diag *d) SHERD_MUST;

#endif
