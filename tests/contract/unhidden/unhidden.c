/*
 * A scheme of the tests that hides nothing and claims nothing. It has one line in the table;
 * nothing else here or in the library refers to it. This table replaces the library's, whose object
 * is not linked because its symbol is already defined.
 */
#include "scheduler/plan/schemes.h"
#include "schemes/blind/blind.h"
#include "schemes/partition/partition.h"
#include "schemes/share/share.h"

static const sherd_scheme_info unhidden = {
    .scheme = (sherd_scheme)77,
    .name = "unhidden",
    .keeps = SHERD_KEEPS_RIGHT,
};

const sherd__scheme sherd__schemes[] = {
    { &sherd__permute, &sherd__partition_planner },
    { &sherd__plain, &sherd__partition_planner },
    { &sherd__share, &sherd__share_planner },
    { &sherd__share1, &sherd__share_planner },
    { &sherd__blind, &sherd__blind_planner },
    { &unhidden, &sherd__partition_planner },
    { NULL, NULL },
};
