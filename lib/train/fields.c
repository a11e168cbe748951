/* Tables of the fields of a training's reports. */
#include "core/field.h"
#include "matrix/funcs.h"
#include "sherd/train.h"

#define EPOCH(member, TYPE, unit, text) SHERD__FIELD(sherd_epoch, member, TYPE, unit, text)
static const sherd_field epoch_fields[] = {
    EPOCH(epoch, U64, "", "epoch of the last step"),
    EPOCH(step, U64, "", "steps made"),
    EPOCH(loss, F64, "", "mean loss over the steps of the report"),
    EPOCH(accuracy, F64, "", "fraction of correct labels in these steps"),
    EPOCH(validation_loss, F64, "", "mean loss of the validation data after the last step"),
    EPOCH(validation_accuracy, F64, "",
          "fraction of correct labels of the validation data after the last step"),
    EPOCH(float64_accuracy, F64, "", "accuracy of the same training in float64"),
    EPOCH(float64_validation_accuracy, F64, "",
          "validation accuracy of the same training in float64"),
    EPOCH(rate, F64, "", "learning rate of the last step"),
    EPOCH(epsilon, F64, "", "privacy cost so far of one example"),
    EPOCH(delta, F64, "", "probability at which epsilon holds"),
    EPOCH(seconds, F64, "s", "since the run began"),
    EPOCH(examples_per_second, F64, "1/s", "since the last report"),
    EPOCH(nodes, U32, "", "nodes that are up"),
    EPOCH(bytes_out, U64, "bytes", "sent to nodes so far"),
    EPOCH(bytes_in, U64, "bytes", "received from nodes so far"),
};
SHERD__FIELDS(sherd_epoch, epoch_fields)

#define PASS(member, TYPE, unit, text) SHERD__FIELD(sherd_train_pass, member, TYPE, unit, text)
static const sherd_field train_pass_fields[] = {
    PASS(version, U64, "", "updates made before"),
    PASS(node, NAME, "", "node that made the pass"),
    PASS(shards, U32, "", "shards of the pass"),
    PASS(asked, F64, "s", "sent, since the training began"),
    PASS(answered, F64, "s", "answered, since the training began"),
    PASS(forward, F64, "s", "the pass started"),
    PASS(last_params, F64, "s", "the last parameters arrived"),
    PASS(top_left, F64, "s", "the top layer's gradient was passed to the connection"),
    PASS(lowest_backward, F64, "s", "the lowest layer's backward pass started"),
    PASS(computed, F64, "s", "the pass ended"),
};
SHERD__FIELDS(sherd_train_pass, train_pass_fields)

#define UPDATE(member, TYPE, text) SHERD__FIELD(sherd_train_update, member, TYPE, "", text)
static const sherd_field train_update_fields[] = {
    UPDATE(version, U64, "updates made before"),
    UPDATE(staleness, U64, "updates that the oldest part missed"),
    UPDATE(by, U32, "node or thread that computed that part"),
    UPDATE(parts, U32, "parts in the update"),
    UPDATE(dropped, U32, "parts that were lost"),
    UPDATE(examples, U64, "examples in the update"),
};
SHERD__FIELDS(sherd_train_update, train_update_fields)

#define REPORT(member, TYPE, unit, text) SHERD__FIELD(sherd_train_report, member, TYPE, unit, text)
static const sherd_field train_report_fields[] = {
    REPORT(by, NAME, "", "what steps are made of"),
    REPORT(nodes, U32, "", "nodes; 0: trained here"),
    REPORT(nodes_up, U32, "", "nodes that are up"),
    REPORT(among, NAME, "", "what carries sums among processes"),
    REPORT(processes, U32, "", "processes that train as peers"),
    REPORT(scheme, NAME, "", "scheme of the products"),
    REPORT(bits, U32, "bits", "width of fixed point; 0: floats"),
    REPORT(parameters, U64, "", "numbers in the network"),
    REPORT(batch, U64, "", "examples of a step"),
    REPORT(step, U64, "", "steps made"),
    REPORT(first_step, U64, "", "step that this run began at"),
    REPORT(steps, U64, "", "steps of the whole training"),
    REPORT(epochs, U64, "", "epochs of the whole training"),
    REPORT(loss, F64, "", "mean loss of the present epoch so far, or of the last one"),
    REPORT(accuracy, F64, "", "fraction of correct labels in the same epoch"),
    REPORT(examples, U64, "", "examples of this run's steps"),
    REPORT(seconds, F64, "s", "duration so far"),
    REPORT(examples_per_second, F64, "1/s", "over the duration"),
    REPORT(bytes_out, U64, "bytes", "sent to nodes"),
    REPORT(bytes_in, U64, "bytes", "received from nodes"),
    REPORT(epochs_checked, U64, "", "epochs after which all parameters were equal"),
    REPORT(sees, NAME, "", "which party sees which data"),
    REPORT(meta, NAME, "", "metadata file of the products"),
    REPORT(meta_reused, BOOL, "", "it had served another training"),
    REPORT(seed_known, BOOL, "", "the seed derives from a number"),
    REPORT(seed_number, U64, "", "this number"),
    REPORT(steps_per_epoch, U64, "", "steps of a pass over all examples"),
    REPORT(steps_per_report, U64, "", "steps between two reports"),
    REPORT(stopped_early, BOOL, "", "as many reports as `patience` had no lower validation loss"),
    REPORT(best_step, U64, "", "step of the report with the lowest validation loss"),
    REPORT(best_loss, F64, "", "validation loss of that report"),
    REPORT(best_accuracy, F64, "", "validation accuracy of that report"),
};
SHERD__FIELDS(sherd_train_report, train_report_fields)

#define GRADIENTS(member, TYPE, text) SHERD__FIELD(sherd_train_gradients, member, TYPE, "", text)
static const sherd_field train_gradients_fields[] = {
    GRADIENTS(shards, U32, "parts of a batch"),
    GRADIENTS(async, BOOL, "each gradient is applied when it arrives"),
    GRADIENTS(in_process, BOOL, "threads of this process computed the gradients"),
    GRADIENTS(threads, U32, "number of these threads"),
    GRADIENTS(local_steps, U64, "steps of a shard between two averages"),
    GRADIENTS(updates, U64, "updates of the parameters"),
    GRADIENTS(parts, U64, "gradients that nodes or threads computed"),
    GRADIENTS(staleness_mean, F64, "updates that a part missed, on average"),
    GRADIENTS(staleness_most, U64, "updates that a part missed, at most"),
    GRADIENTS(dropped, U64, "parts of lost nodes that did not count"),
    GRADIENTS(rescaled, U64, "steps computed again with a coarser scale"),
    GRADIENTS(pace_node, TEXT, "node that takes longest for a shard; empty: none"),
    GRADIENTS(pace_times, F64, "times as long as the others (median)"),
};
SHERD__FIELDS(sherd_train_gradients, train_gradients_fields)

#define ALLREDUCE(member, TYPE, unit, text)                                                        \
    SHERD__FIELD(sherd_train_allreduce, member, TYPE, unit, text)
static const sherd_field train_allreduce_fields[] = {
    ALLREDUCE(by, NAME, "", "how sums are made"),
    ALLREDUCE(members, U32, "", "nodes that take part"),
    ALLREDUCE(rounds, U64, "", "complete rounds"),
    ALLREDUCE(repeated, U64, "", "rounds that were repeated"),
    ALLREDUCE(link_bytes_out, U64, "bytes", "sent on links between nodes"),
    ALLREDUCE(link_bytes_in, U64, "bytes", "received on links between nodes"),
    ALLREDUCE(examples_bytes, U64, "bytes", "examples sent to nodes"),
};
SHERD__FIELDS(sherd_train_allreduce, train_allreduce_fields)

#define LINK(member, TYPE, unit, text) SHERD__FIELD(sherd_train_link, member, TYPE, unit, text)
static const sherd_field train_link_fields[] = {
    LINK(node, TEXT, "", "node that opened the links"),
    LINK(bytes_out, U64, "bytes", "sent by the node"),
    LINK(bytes_in, U64, "bytes", "received by the node"),
    LINK(blocks_in, U64, "bytes", "of blocks that other nodes sent to the node"),
};
SHERD__FIELDS(sherd_train_link, train_link_fields)

#define SECURE(member, TYPE, text) SHERD__FIELD(sherd_train_secure, member, TYPE, "", text)
static const sherd_field train_secure_fields[] = {
    SECURE(simulated, BOOL, "nodes were given their data from here"),
    SECURE(colluding, U32, "nodes that may combine what they see"),
    SECURE(updates, U64, "updates of the parameters"),
    SECURE(parts, U64, "sum over all rounds of the nodes in the sum"),
    SECURE(dropped, U64, "sum over all rounds of the nodes that were not in the sum"),
    SECURE(rescaled, U64, "steps computed again with a coarser scale"),
    SECURE(rounds, U64, "rounds that examples took part in"),
    SECURE(rows, U64, "places of each node in a round"),
    SECURE(places, U64, "places of each node in an epoch"),
    SECURE(clip, F64, "norm that gradients of an example are scaled to"),
    SECURE(noise, F64, "noise, in multiples of what one example can change"),
    SECURE(epsilon, F64, "privacy cost so far of one example"),
    SECURE(delta, F64, "probability at which epsilon holds"),
};
SHERD__FIELDS(sherd_train_secure, train_secure_fields)

#define EXPOSURE(member, TYPE, unit, text)                                                         \
    SHERD__FIELD(sherd_train_exposure, member, TYPE, unit, text)
static const sherd_field train_exposure_fields[] = {
    EXPOSURE(operation, TEXT, "", "operation of the step"),
    SHERD__FIELD_ENUM(sherd_train_exposure, kind, sherd__op_names, "what it computes"),
    EXPOSURE(node, U32, "", "index of the node"),
    EXPOSURE(calls, U64, "", "times that nodes computed it"),
    EXPOSURE(exposed_a, F64, "fraction", "fraction of A's entries that the node was given"),
    EXPOSURE(exposed_b, F64, "fraction", "fraction of B's entries"),
};
SHERD__FIELDS(sherd_train_exposure, train_exposure_fields)

#define CHECKPOINTS(member, TYPE, text) SHERD__FIELD(sherd_checkpoints, member, TYPE, "", text)
static const sherd_field checkpoints_fields[] = {
    CHECKPOINTS(checkpoints, U64, "number of files"),
    CHECKPOINTS(first, TEXT, "name of the oldest file"),
    CHECKPOINTS(last, TEXT, "name of the newest file"),
    CHECKPOINTS(step, U64, "step of the newest file"),
    CHECKPOINTS(head, TEXT, "SHA-256 of the newest file"),
    CHECKPOINTS(whole, BOOL, "the first file names no earlier one"),
    CHECKPOINTS(late, BOOL, "`head` does not name the last file yet"),
};
SHERD__FIELDS(sherd_checkpoints, checkpoints_fields)
