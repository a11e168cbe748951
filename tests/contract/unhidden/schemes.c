/* The library's table of schemes (scheduler/plan/schemes.c), with one more line. It replaces that
 * table, whose object is not linked because its symbol is already defined. */
#include "scheduler/plan/schemes.h"

#include "schemes/blind/blind.h"
#include "schemes/partition/partition.h"
#include "schemes/share/share.h"
#include "tests/contract/unhidden/unhidden.h"

const sherd__scheme sherd__schemes[] = {
    { &sherd__permute, &sherd__partition_planner },
    { &sherd__plain, &sherd__partition_planner },
    { &sherd__share, &sherd__share_planner },
    { &sherd__share1, &sherd__share_planner },
    { &sherd__blind, &sherd__blind_planner },
    { &unhidden, &unhidden_planner },
    { NULL, NULL },
};
