/* Reports of products: memory, the names of their fields, and one row for each node. */
#include <string.h>

#include "core/alloc.h"
#include "core/field.h"
#include "core/options.h"
#include "core/wipe.h"
#include "scheduler/cluster/internal.h"
#include "scheduler/plan/encoding.h"
#include "scheduler/plan/share_code.h"
#include "sherd/product.h"

void sherd_report_fini(sherd_report *r)
{
    sherd__free(r->planned);
    sherd__free(r->exposed_a);
    sherd__free(r->exposed_b);
    sherd__free(r->bytes_out);
    sherd__free(r->bytes_in);
    sherd__free(r->states);
    size_t size = r->size; /* 0: a report of our own */
    sherd__wipe(r, size && size < sizeof *r ? size : sizeof *r);
    r->size = size;
}

int sherd__report_init(sherd_report *r, uint32_t nodes)
{
    *r = (sherd_report){ .nodes = nodes };
    r->planned = sherd__calloc(nodes, sizeof *r->planned);
    r->exposed_a = sherd__calloc(nodes, 2 * sizeof *r->exposed_a);
    r->exposed_b = sherd__calloc(nodes, sizeof *r->exposed_b);
    r->bytes_out = sherd__calloc(nodes, sizeof *r->bytes_out);
    r->bytes_in = sherd__calloc(nodes, sizeof *r->bytes_in);
    r->states = sherd__calloc(nodes, sizeof *r->states);
    /* In one allocation: a caller's report of an earlier version has no member for it. */
    r->done = r->exposed_a ? r->exposed_a + nodes : NULL;
    if (r->planned && r->exposed_a && r->exposed_b && r->bytes_out && r->bytes_in && r->states)
        return SHERD_OK;
    sherd_report_fini(r);
    return SHERD_ENOMEM;
}

int sherd_report_node_at(const sherd_report *r, sherd_cluster *c, uint32_t i,
                         sherd_report_node *out, sherd_diag *d)
{
    sherd_node_info info = { .size = sizeof info };
    int err = sherd__result_check(out, "sherd_report_node", d);
    if (!err) err = sherd__result_check(r, "sherd_report", d);
    if (!err) err = sherd_cluster_node_at(c, i, &info, d);
    if (err) return err;
    sherd_report_node n = { .pid = info.pid, .state = info.state, .tasks = info.tasks };
    memcpy(n.name, info.name, sizeof n.name);
    memcpy(n.address, info.address, sizeof n.address);
    memcpy(n.domain, info.domain, sizeof n.domain);
    memcpy(n.key, info.key, sizeof n.key);
    memcpy(n.blas_core, info.blas_core, sizeof n.blas_core);
    if (i < r->nodes) {
        n.state = r->states[i];
        n.planned = r->planned[i];
        n.exposed_a = r->exposed_a[i];
        n.exposed_b = r->exposed_b[i];
        n.bytes_out = r->bytes_out[i];
        n.bytes_in = r->bytes_in[i];
        if (r->size >= offsetof(sherd_report, done) + sizeof r->done) n.done = r->done[i];
    }
    sherd__result_write(out, &n, sizeof n);
    return SHERD_OK;
}

/* An array with an element for each node. */
#define EACH(member, TYPE, unit, text)                                                             \
    SHERD__FIELD_ARRAY(sherd_report, member, TYPE, nodes, unit, text)
#define COUNT(member, TYPE, text) SHERD__FIELD(sherd_report, member, TYPE, "", text)

static const sherd_field report_fields[] = {
    COUNT(nodes, U32, "nodes of the cluster"),
    EACH(planned, U32, "", "columns or rows of A that were planned for each node"),
    EACH(exposed_a, F64, "fraction", "fraction of A's entries that each node received"),
    EACH(exposed_b, F64, "fraction", "of B's entries, given to each node"),
    EACH(bytes_out, U64, "bytes", "sent to each node"),
    EACH(bytes_in, U64, "bytes", "received from each node"),
    { "states", SHERD_FIELD_ENUM, offsetof(sherd_report, states), sizeof(sherd_node_state),
      offsetof(sherd_report, nodes), sherd__node_states, "",
      "of each node at the end of the call" },
    SHERD__FIELD(sherd_report, work_out, U64, "bytes", "of blocks and tasks"),
    SHERD__FIELD(sherd_report, work_in, U64, "bytes", "of results"),
    COUNT(tasks, U64, "tasks that were answered and accepted"),
    COUNT(tasks_repeated, U64, "tasks that were sent again"),
    COUNT(fragments, U64, "pieces that a node multiplied"),
    COUNT(panels, U64, "row panels"),
    COUNT(tiles, U64, "column tiles"),
    COUNT(rows_skipped, U64, "all-zero rows that were not sent"),
    SHERD__FIELD_ENUM(sherd_report, encoding, sherd__encoding_names, "how A was sent"),
    COUNT(tasks_csr, U64, "tasks with a panel in CSR"),
    COUNT(blocks, U32, "blocks that A was cut into"),
    COUNT(threshold, U32, "answers that recover a product"),
    COUNT(domains, U32, "domains of the nodes"),
    COUNT(nodes_used, U32, "nodes that were up or were given work"),
    COUNT(domains_used, U32, "domains with nodes that were up or were given work"),
    COUNT(tasks_cancelled, U64, "answers that were no longer needed"),
    COUNT(encodings, U32, "times that shares were made"),
    COUNT(masks_left, U64, "rows of masks that are left"),
    COUNT(nodes_lost, U32, "nodes that were lost"),
    COUNT(nodes_banned, U32, "nodes that were banned"),
    COUNT(banned, TEXT, "names of the nodes that were banned"),
    COUNT(scale_a, I32, "exponent of A's fixed point"),
    COUNT(scale_b, I32, "exponent of B's fixed point"),
    COUNT(bits_a, U32, "width of A"),
    COUNT(bits_b, U32, "width of B"),
    COUNT(primes, U32, "number of primes"),
    COUNT(check_error, F64, "probability that a wrong answer is accepted"),
    COUNT(check_tolerant, BOOL, "the check catches gross errors only"),
    COUNT(seed, BYTES, "the seed that was used, a secret"),
    SHERD__FIELD(sherd_report, seconds, F64, "s", "duration of the call"),
    COUNT(pace_node, U32, "node that the others waited for, from 1; 0: none"),
    SHERD__FIELD(sherd_report, pace_seconds, F64, "s", "time in which that node owed answers"),
    SHERD__FIELD(sherd_report, pace_others, F64, "s", "median of the other nodes' times"),
    EACH(done, F64, "fraction", "of the accepted tasks, that each node answered"),
    COUNT(prime_bits, U32, "bits of each prime; 0: there is none"),
    SHERD__FIELD_ENUM(sherd_report, code, sherd__code_names, "code of the shares"),
};
SHERD__FIELDS(sherd_report, report_fields)

#define OF_NODE(member, TYPE, unit, text) SHERD__FIELD(sherd_report_node, member, TYPE, unit, text)

static const sherd_field report_node_fields[] = {
    OF_NODE(name, TEXT, "", "name"),
    OF_NODE(address, TEXT, "", "host and port"),
    OF_NODE(domain, TEXT, "", "domain"),
    OF_NODE(key, TEXT, "", "fingerprint of the node's key"),
    OF_NODE(pid, I64, "", "process, of a local node"),
    SHERD__FIELD_ENUM(sherd_report_node, state, sherd__node_states, "state at the end of the call"),
    OF_NODE(blas_core, TEXT, "", "BLAS kernels that the node uses"),
    OF_NODE(tasks, U64, "", "tasks that the node has answered so far"),
    OF_NODE(planned, U32, "", "columns or rows of A that were planned for the node"),
    OF_NODE(exposed_a, F64, "fraction", "fraction of A's entries that the node received"),
    OF_NODE(exposed_b, F64, "fraction", "of B's entries, given to the node"),
    OF_NODE(bytes_out, U64, "bytes", "sent to the node"),
    OF_NODE(bytes_in, U64, "bytes", "received from the node"),
    OF_NODE(done, F64, "fraction", "of the accepted tasks, that the node answered"),
};
SHERD__FIELDS(sherd_report_node, report_node_fields)
