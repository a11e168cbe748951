#include "tests/support/refusals.h"

#include <stddef.h>
#include <string.h>

#include "sherd/err.h"

static const struct {
    int code;
    const char *text;
} table[] = {
    { SHERD_OK, "" },
    { SHERD_ENOMEM, "not enough memory" },
    { SHERD_EINVAL, "it names something that does not exist, or comes at the wrong step" },
    { SHERD_EINVAL, "a block that it names is missing" },
    { SHERD_EINVAL, "a parameter is not finite" },
    { SHERD_EINVAL, "a step of another training" },
    { SHERD_EINVAL, "the dealt examples are missing" },
    { SHERD_EINVAL, "JOIN must come first" },
    { SHERD_EINVAL, "no JOIN in this job" },
    { SHERD_EINVAL, "no MEET in this job" },
    { SHERD_EINVAL, "the roster must come first" },
    { SHERD_EINVAL, "no state to continue from" },
    { SHERD_EINVAL, "the roster is known" },
    { SHERD_EINVAL, "the block of a recipe does not contain a recipe" },
    { SHERD_EINVAL, "another round is in progress" },
    { SHERD_EINVAL, "this round already has its gradient" },
    { SHERD_EINVAL, "this round already has its answer" },
    { SHERD_EINVAL, "this round has no upload of this node" },
    { SHERD_EINVAL, "this round has no survivors yet" },
    { SHERD_EINVAL, "this round has other parameters, scales or members than were announced" },
    { SHERD_EINVAL, "an operand holds residues, but the task has no primes" },
    { SHERD_EINVAL, "an operand holds floats, but the task has primes" },
    { SHERD_EINVAL, "the node has data of its own" },
    { SHERD_EINVAL, "the node has no data of its own (--data)" },
    { SHERD_ERANGE, "a value is out of range" },
    { SHERD_ERANGE, "a number is not finite: training diverged" },
    { SHERD_EAUTH, "a member is not in --peers of this node" },
    { SHERD_ESHAPE, "the examples have other columns than the network takes" },
    { SHERD_EINTERNAL, "internal error" },
    { SHERD_EINTERRUPTED, "cancelled" },
    { SHERD_ETIMEOUT, "timed out" },
    { SHERD_EFEWNODES, "too few live nodes or domains, or too small ones" },
    { SHERD_EEXPOSURE, "an exposure or reuse bound forbids it" },
    { SHERD_EDIFFERS, "differs from the centralized result" },
    { SHERD_EUNSUPPORTED, "not supported here" },
    { SHERD_EUNSUPPORTED, "operation is not known here" },
    { SHERD_EUNSUPPORTED, "this node takes no part in aggregation" },
    { SHERD_EUNSUPPORTED, "this node takes no part in all-reduce groups" },
    { SHERD_EBUSY, "busy with an earlier request" },
    { SHERD_EBUSY, "another all-reduce group has this name" },
    { SHERD_EBUSY, "peer does not read its answers" },
    { SHERD_ESTOPPED, "stopped, can be resumed" },
    { SHERD_EFRAME, "malformed record" },
    { SHERD_EAUTH, "a key is not accepted" },
    { SHERD_EAUTH, "key is no longer allowed" },
    { SHERD_EWRONG, "peer returned a result that fails verification" },
    { SHERD_EREFUSED, "refused" },
    { SHERD_EREFUSED, "the block does not fit into this node's memory" },
    { SHERD_EREFUSED, "the block is larger than this node takes" },
    { SHERD_EVERSION, "peer speaks another version" },
    { SHERD_EUNASKED, "peer sent something that was not asked for" },
    { SHERD_EUNASKED, "a member may send blocks of its all-reduce group only" },
    { SHERD_ESILENT, "peer was silent for too long" },
    { SHERD_ECLOSED, "connection closed" },
    { SHERD_ECLOSED, "the node is ending" },
    { SHERD_ECLOSED, "the node is ending: its device failed" },
    { SHERD_ECONNECT, "cannot connect" },
    { SHERD_EADDRINUSE, "address already in use" },
    { SHERD_ENET, "network error" },
    { SHERD_EDEVICE, "device failed or failed its self-test" },
    { SHERD_EOPEN, "cannot open file" },
    { SHERD_EIO, "cannot read or write file" },
    { SHERD_EFORMAT, "a block does not contain what was requested" },
    { SHERD_EFORMAT, "a plan with noise needs a clipping norm" },
    { SHERD_EFORMAT, "a plan without shards" },
    { SHERD_EFORMAT, "the block of a plan does not contain a plan" },
    { SHERD_EFORMAT, "the block of a recipe does not contain a recipe" },
    { SHERD_EFORMAT, "the block of a roster does not contain a roster" },
    { SHERD_EFORMAT, "the block of a step does not contain a step" },
    { SHERD_EFORMAT, "another format of secure aggregation: bring both to one version of "
                     "sherd" },
    { SHERD_ESHAPE, "blocks, request and result do not agree in shape" },
    { SHERD_EKEY, "bad or unreadable key" },
    { SHERD_ECHAIN, "checkpoint chain broken" },
};

bool refusal_is_constant(int code, const char *text)
{
    if (strncmp(text, "policy: ", 8) == 0)
        return code == SHERD_EREFUSED || code == SHERD_EEXPOSURE || code == SHERD_EIO;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].code == code && strcmp(table[i].text, text) == 0) return true;
    return false;
}
