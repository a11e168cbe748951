/* The parts of `sherd audit`. */
#ifndef CLI_AUDIT_H
#define CLI_AUDIT_H

#include "cli/cli.h"
#include "sherd/audit.h"

/** Prints the report for people. */
void sherd__audit_print(const sherd_audit *a);

/**
 * Prints the audit at the end of `sherd demo`: what one of `nodes` nodes recovers from generated
 * digits under permute (as published, and as sent here) and under share. own: the products were of
 * the user's images, which are not attacked. If `out` is not NULL, adds
 * it as member "audit" instead. Takes about a second.
 */
int sherd__audit_summary(uint32_t nodes, bool own, json_t *out, sherd_diag *d) SHERD_MUST;

#endif
