/* The table of schemes, one line for each. There is no other list of them. */
#include "scheduler/plan/schemes.h"

#include "schemes/blind/blind.h"
#include "schemes/partition/partition.h"
#include "schemes/share/share.h"

const sherd__scheme sherd__schemes[] = {
    { &sherd__permute, &sherd__partition_planner }, { &sherd__plain, &sherd__partition_planner },
    { &sherd__share, &sherd__share_planner },       { &sherd__share1, &sherd__share_planner },
    { &sherd__blind, &sherd__blind_planner },       { NULL, NULL },
};
