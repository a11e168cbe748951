/*
 * What a refusal or a goodbye says to the peer: a sentence that depends on its code alone, or one
 * of a fixed table. The reason in full may hold sizes, names and numbers that other peers' use, the
 * node's data or its machine decide; it belongs in this side's own log.
 */
#ifndef WIRE_SAYS_H
#define WIRE_SAYS_H

/**
 * The sentence for the peer. `text` itself where it is in the table, or begins with "policy: ",
 * which only node/secure/policy.h writes (from the policy alone). A constant, or `text`.
 */
const char *sherd__says(int code, const char *text);

#endif
