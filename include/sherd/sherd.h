/*
 * All public declarations of libsherd, for C (C11) and C++ (C++11).
 *
 * Structs of options and of results begin with `size`, which the caller sets to their sizeof. A
 * member of options that is 0 has its default, and so have all of them if the pointer to the
 * options is NULL. Options that a call fills in, and results, may be NULL only where the
 * declaration says so.
 */
#ifndef SHERD_SHERD_H
#define SHERD_SHERD_H

#include "sherd/array.h"
#include "sherd/audit.h"
#include "sherd/certificate.h"
#include "sherd/check.h"
#include "sherd/cluster.h"
#include "sherd/collective.h"
#include "sherd/data.h"
#include "sherd/digest.h"
#include "sherd/err.h"
#include "sherd/field.h"
#include "sherd/forecast.h"
#include "sherd/hooks.h"
#include "sherd/identity.h"
#include "sherd/local.h"
#include "sherd/machine.h"
#include "sherd/masks.h"
#include "sherd/mat.h"
#include "sherd/meta.h"
#include "sherd/model.h"
#include "sherd/multiplier.h"
#include "sherd/node.h"
#include "sherd/npy.h"
#include "sherd/op.h"
#include "sherd/operation.h"
#include "sherd/product.h"
#include "sherd/profile.h"
#include "sherd/recipe.h"
#include "sherd/scheme.h"
#include "sherd/train.h"
#include "sherd/version.h"
#include "sherd/windows.h"

#endif
