/*
 * build/sherd-mpi: `sherd train --by gradients` in processes that mpirun starts, inside one trusted
 * cluster. Every process has data and weights; gradients are summed by MPI_Allreduce. MPI's traffic
 * is neither encrypted nor authenticated, so an option must confirm this. It is a program of its
 * own, so that the command is never linked with MPI.
 *
 * Process 0 prints and writes; the others report only what failed in them alone
 * (cli/train_options.c).
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/early.h"
#include "core/alloc.h"
#include "core/clock.h"
#include "core/diag.h"

#define PIECE ((size_t)1 << 28) /* numbers of one call: MPI counts in int */
#define LEAVE_SECONDS 2.0

static MPI_Comm leaving = MPI_COMM_NULL; /* other threads may be in calls of MPI_COMM_WORLD */

static int sum(void *ctx, int64_t *values, size_t n, sherd_diag *d)
{
    (void)ctx;
    for (size_t at = 0; at < n; at += PIECE) {
        int len = (int)(n - at < PIECE ? n - at : PIECE);
        /* unsigned: sums wrap around */
        if (MPI_Allreduce(MPI_IN_PLACE, values + at, len, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD) !=
            MPI_SUCCESS)
            return sherd__fail(d, SHERD_ENET, NULL, "MPI_Allreduce failed");
    }
    return SHERD_OK;
}

/* Processes of MPI_COMM_WORLD that share memory with this one. */
static int count_here(void)
{
    MPI_Comm host;
    int here = 1;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) !=
        MPI_SUCCESS)
        return here;
    MPI_Comm_size(host, &here);
    MPI_Comm_free(&host);
    return here;
}

/* Process 0 reports how many processes have no threads for OpenBLAS. */
static void warn_of_alone(int rank, int size, int alone)
{
    int all = 0;
    if (MPI_Reduce(&alone, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD) != MPI_SUCCESS ||
        rank != 0 || all == 0)
        return;
    fprintf(stderr,
            "sherd-mpi: warning: cannot start another thread in %d of %d processes, which OpenBLAS "
            "needs: their products use one thread\n"
            "  try: raise the limit (ulimit -u, ulimit -v, the control group's pids)\n",
            all, size);
}

/* Arguments for the command; out has room for argc + 1. Returns their number. */
static int arguments(int argc, char **argv, char **out, bool *trusted)
{
    int n = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--trusted-network") == 0) *trusted = true;
        else out[n++] = argv[i];
    }
    out[n] = NULL;
    return n;
}

/* Ends with status, or with that of process 0 if it failed, too, since mpirun returns the code of
 * the process that ends first. Processes that still wait for this one are ended. */
static int leave(int rank, int status)
{
    MPI_Request all;
    int ended = status == 0, mine = rank == 0 ? status : 0, first = 0;
    if (!ended &&
        MPI_Iallreduce(&mine, &first, 1, MPI_INT, MPI_MAX, leaving, &all) == MPI_SUCCESS) {
        double until = sherd__clock_s() + LEAVE_SECONDS;
        while (!ended && sherd__clock_s() < until) {
            (void)MPI_Test(&all, &ended, MPI_STATUS_IGNORE);
            usleep(1000);
        }
    }
    if (!ended) MPI_Abort(MPI_COMM_WORLD, status);
    MPI_Finalize();
    return first != 0 ? first : status;
}

static int refuse(int rank, const char *what, const char *remedy)
{
    if (rank == 0) fprintf(stderr, "sherd-mpi: %s\n  try: %s\n", what, remedy);
    return leave(rank, 2);
}

int main(int argc, char **argv)
{
    int rank = 0, size = 1;
    bool trusted = false, alone = sherd__early_alone();
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPI_Comm_dup(MPI_COMM_WORLD, &leaving) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    warn_of_alone(rank, size, alone);
    char **args = sherd__calloc((size_t)argc + 1, sizeof *args);
    if (!args) return leave(rank, 1);
    int n = arguments(argc, argv, args, &trusted);
    if (argc < 2 || strcmp(argv[1], "train") != 0)
        return refuse(rank, "this program can only train",
                      "mpirun -n 4 sherd-mpi train NAME --by gradients --trusted-network");
    if (!trusted)
        return refuse(
            rank, "MPI sends gradients in clear, so anyone on the network can read them",
            "add --trusted-network if the network is trusted, or use `sherd train --nodes FILE`");
    if (rank != 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null >= 0) (void)dup2(null, STDOUT_FILENO);
    } else {
        fprintf(stderr,
                "sherd-mpi: %d processes; data, weights and gradients are in clear among "
                "them\n",
                size);
    }
    const sherd_collective c = { .size = sizeof c,
                                 .name = "MPI, in clear",
                                 .rank = (uint32_t)rank,
                                 .count = (uint32_t)size,
                                 .here = (uint32_t)count_here(),
                                 .sum = sum };
    sherd__train_among(&c);
    int status = sherd__cli_main(n, args);
    sherd__free(args);
    return leave(rank, status);
}
