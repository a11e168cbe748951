/*
 * A scheme of the tests: it hides nothing, and claims nothing. It stands in the table by one line;
 * nothing else here or in the library knows it. This table takes the place of the library's, whose
 * object is not linked where its symbol is there already.
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
