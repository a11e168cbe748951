/*
 * The manifest of a metadata file: a JSON text.
 *
 *   {"format": 1, "tool": "sherd 0.1.0", "form": "seed" | "expanded", "scheme": "permute",
 *    "nodes": 7, "group": 1 | "all", "exposure": "uniform" | "balanced", "shuffle_rows": false,
 *    "seed_commitment": "64 hexadecimal digits",
 *    "operations": [{"name": "z1", "kind": "dot", "shape": [n, k, m]},
 *                   {"name": "a1", "kind": "sigmoid", "shape": [n, m]}, ...]}
 *
 * An operation that has been used for operands has "operands", their digest. In the expanded form
 * each operation has "exposures_sha256". Any other member is refused: a later format has another
 * number.
 */
#ifndef STORE_MANIFEST_H
#define STORE_MANIFEST_H

#include "core/buf.h"
#include "store/metafile.h"

/** Fills settings, form, commitment and operations of a zeroed *f. The caller frees *f with
 *  sherd__metafile_fini, on failure too. Errors: SHERD_EFORMAT with `where` and the field;
 *  SHERD_ENOMEM. */
int sherd__manifest_parse(sherd__metafile *f, const char *text, size_t len, const char *where,
                          sherd_diag *d) SHERD_MUST;

/** Appends f's manifest to out. exposures_sha256, one per operation: for the expanded form. */
int sherd__manifest_format(const sherd__metafile *f, bool expanded,
                           const uint8_t (*exposures_sha256)[32], sherd__buf *out) SHERD_MUST;

#endif
