/* A program on a lane (program.h): its steps are started in their order on the lane's queue, so
 * that only copies to the host and calls wait for the device. */
#include "node/backends/accelerator_internal.h"
#include "node/backends/program.h"

static int launch(accelerator_run *r, const sherd__program_step *s, sherd_diag *d)
{
    const sherd__kernel_memory m = { r->out, r->out, r->out, r->lane->bad };
    const uint32_t groups[2] = { s->groups, 1 };
    const sherd__kernel_job job = s->job; /* a driver may read it when the caller's is gone */
    return s->groups ? sherd__lane_launch(r->lane, s->kernel, &m, &job, groups, d)
                     : sherd__accelerator_each(r, s->kernel, &job, d);
}

static int check_numbers(accelerator_run *r, sherd_diag *d)
{
    return sherd__accelerator_checked(r, "a number is not finite", d);
}

static int call_back(accelerator_run *r, const sherd__program *p, sherd_diag *d)
{
    int err = check_numbers(r, d);
    return err ? err : p->call(p->ctx, d);
}

static int run_step(accelerator_run *r, const sherd__program_step *s, sherd_diag *d)
{
    sherd__kernel_job job = s->job;
    switch (s->kind) {
    case SHERD__STEP_LAUNCH: return launch(r, s, d);
    case SHERD__STEP_MULTIPLY: return sherd__accelerator_multiply(r, KIND_F64, &job, d);
    case SHERD__STEP_WRITE:
        return sherd__lane_write(r->lane, r->out, job.out_at, s->host, s->len, d);
    case SHERD__STEP_READ:
        return sherd__lane_read(r->lane, r->out, job.left_at, s->host, s->len, d);
    default: return call_back(r, r->call->program, d);
    }
}

static int run_steps(accelerator_run *r, const sherd__program *p, sherd_diag *d)
{
    accelerator_block all = { .memory = r->out }; /* every operand lies in it */
    int err = sherd__lane_zero(r->lane, r->lane->bad, sizeof(uint32_t), d);
    r->left = r->right = &all;
    if (!err) err = sherd__lane_zero(r->lane, r->out, p->zeroed, d);
    for (size_t i = 0; i < p->count && !err; i++) {
        const sherd__program_step *s = &p->steps[i];
        const bool product = s->kind == SHERD__STEP_MULTIPLY; /* which is paced by itself */
        err = sherd__accelerator_pace(r, product ? 0 : s->flops / ACCELERATOR_FLOPS, d);
        sherd__accelerator_renew(r->lane, r->load * ACCELERATOR_FLOPS + s->flops);
        if (!err) err = run_step(r, s, d);
    }
    return err ? err : check_numbers(r, d);
}

int sherd__accelerator_run(accelerator_lane *l, const sherd__call *c, sherd_diag *d)
{
    const sherd__program *p = c->program;
    accelerator_run r = { .lane = l, .call = c };
    int err = sherd__accelerator_reserve(l->on, p->memory, d);
    if (err) return err;
    err = sherd__lane_memory(l, p->memory, &r.out, d);
    if (!err) err = run_steps(&r, p, d);
    if (err && r.out) (void)sherd__lane_finish(l, NULL); /* before its memory is freed */
    sherd__accelerator_library_end(&r);
    if (r.out) sherd__accelerator_forget(l, r.out, p->memory);
    sherd__accelerator_unreserve(l->on, p->memory);
    sherd__lane_wipe(l);
    return err;
}
