/* Implements says.h. The text must match as a whole, or it is replaced by a general one, so
 * formatted details never reach the peer. */
#include "wire/says.h"

#include <stddef.h>
#include <string.h>

#include "sherd/err.h"

static const char *const table[] = {
    "a member may send blocks of its all-reduce group only",
    "a parameter is not finite",
    "a plan with noise needs a clipping norm",
    "a plan without shards",
    "a step of another training",
    "another all-reduce group has this name",
    "another format of secure aggregation: bring both to one version of sherd",
    "the dealt examples are missing",
    "key is no longer allowed",
    "JOIN must come first",
    "no JOIN in this job",
    "no MEET in this job",
    "the roster must come first",
    "no state to continue from",
    "the node is ending",
    "the node is ending: its device failed",
    "operation is not known here",
    "peer does not read its answers",
    "the block does not fit into this node's memory",
    "the block is larger than this node takes",
    "the all-reduce group has ended",
    "the measurement is done",
    "the node has data of its own",
    "the node has no data of its own (--data)",
    "the roster is known",
    "the work is done",
    "this node takes no part in aggregation",
    "this node takes no part in all-reduce groups",
};

/* Texts that contain these words have details, which concern what the peer has requested. They are
 * sent without the details. */
static const struct {
    const char *words, *text;
} general[] = {
    { "no block ", "a block that it names is missing" },
    { " is not a plan", "the block of a plan does not contain a plan" },
    { " is not a recipe", "the block of a recipe does not contain a recipe" },
    { " is not a roster", "the block of a roster does not contain a roster" },
    { " is not a step", "the block of a step does not contain a step" },
    { ": this is round ", "another round is in progress" },
    { "already has its gradient", "this round already has its gradient" },
    { "already has its answer", "this round already has its answer" },
    { "has no upload of this node", "this round has no upload of this node" },
    { "has no survivors yet", "this round has no survivors yet" },
    { "has other parameters", "this round has other parameters, scales or members than were "
                              "announced" },
    { "holds residues, but the task has no primes",
      "an operand holds residues, but the task has no primes" },
    { "holds floats, but the task has primes", "an operand holds floats, but the task has primes" },
    { "not in --peers of this node", "a member is not in --peers of this node" },
    { "training diverged", "a number is not finite: training diverged" },
    { "the examples have", "the examples have other columns than the network takes" },
};

static const char *sentence(int code)
{
    switch (code) {
    case SHERD_OK: return "";
    case SHERD_EINVAL: return "it names something that does not exist, or comes at the wrong step";
    case SHERD_ERANGE: return "a value is out of range";
    case SHERD_ENOMEM: return "not enough memory";
    case SHERD_EBUSY: return "busy with an earlier request";
    case SHERD_EUNSUPPORTED: return "not supported here";
    case SHERD_EINTERRUPTED: return "cancelled";
    case SHERD_EFRAME: return "malformed record";
    case SHERD_EAUTH: return "a key is not accepted";
    case SHERD_EREFUSED: return "refused";
    case SHERD_EFORMAT: return "a block does not contain what was requested";
    case SHERD_ESHAPE: return "blocks, request and result do not agree in shape";
    default: return sherd_strerror(code);
    }
}

const char *sherd__says(int code, const char *text)
{
    if (strncmp(text, "policy: ", 8) == 0) return text;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(text, table[i]) == 0) return text;
    for (size_t i = 0; i < sizeof general / sizeof *general; i++)
        if (strstr(text, general[i].words)) return general[i].text;
    return sentence(code);
}
