/*
 * Texts of refusals and goodbyes that are sent to the peer: a sentence that depends only on the
 * error code, or one of a fixed table. The full reason may contain sizes, names and numbers that
 * depend on other peers' use, the node's data or its machine; it is written only to the local log.
 */
#ifndef WIRE_SAYS_H
#define WIRE_SAYS_H

/**
 * Returns the text for the peer: `text` if it is in the table or begins with "policy: ", a prefix
 * that only node/secure/policy.h writes (from the policy alone), otherwise a constant string.
 */
const char *sherd__says(int code, const char *text);

#endif
