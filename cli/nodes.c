/*
 * Opens a sherd_cluster from -n, --nodes or a running local cluster.
 *
 * The state folder of a local cluster is trusted only if it belongs to this user and no other user
 * can access it: in /tmp any user could create a folder of that name.
 */
#include "cli/nodes.h"
#include "cli/process.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cpu.h"
#include "scheduler/plan/prepare.h"
#include "wire/identity.h"

int sherd__nodes_folder(char *out, size_t size)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int n = runtime && *runtime == '/'
                ? snprintf(out, size, "%s/sherd", runtime)
                : snprintf(out, size, "/tmp/sherd-%lu", (unsigned long)getuid());
    return n > 0 && (size_t)n < size ? 0 : SHERD_EINVAL;
}

/* Source of the nodes according to the options: a number of local nodes, or files. */
typedef struct source {
    uint32_t local;
    bool ours; /* a cluster that `sherd cluster up` has started here */
    char nodes[PATH_MAX], key[PATH_MAX];
} source;

static int running_cluster(source *s, sherd_diag *d)
{
    char folder[PATH_MAX - 16];
    struct stat st;
    if (sherd__nodes_folder(folder, sizeof folder) != 0 || lstat(folder, &st) != 0)
        return sherd__fail(d, SHERD_EINVAL,
                           "-n 7 starts seven nodes on this machine; --nodes FILE "
                           "uses those that FILE lists",
                           "no nodes: give -n N or --nodes FILE");
    if (!S_ISDIR(st.st_mode) || st.st_uid != getuid() || (st.st_mode & 077) != 0)
        return sherd__fail(d, SHERD_EINVAL,
                           "give -n N or --nodes FILE, and look who made that folder",
                           "%s is not a folder that is ours alone: a local cluster in it is not "
                           "trusted",
                           folder);
    snprintf(s->nodes, sizeof s->nodes, "%s/" SHERD__CLUSTER_NODES, folder);
    snprintf(s->key, sizeof s->key, "%s/" SHERD__CLUSTER_KEY, folder);
    if (access(s->nodes, F_OK) != 0)
        return sherd__fail(d, SHERD_EINVAL,
                           "-n 7 starts seven nodes on this machine; --nodes FILE "
                           "uses those that FILE lists",
                           "no nodes: give -n N or --nodes FILE");
    return 0;
}

static int find_source(source *s, sherd__cli *cli, sherd_diag *d)
{
    memset(s, 0, sizeof *s);
    const char *file = sherd__opt_text(cli, "nodes"), *key = sherd__opt_text(cli, "key");
    if (!file && sherd__opt_int(cli, "local") > 0) { /* given, or preset by the verb */
        s->local = (uint32_t)sherd__opt_int(cli, "local");
        return 0;
    }
    s->ours = !file;
    if (s->ours) return running_cluster(s, d);
    snprintf(s->nodes, sizeof s->nodes, "%s", file);
    if (!key)
        return sherd__fail(d, SHERD_EINVAL,
                           "`sherd keygen me.key` makes one; the nodes must allow it",
                           "%s needs --key FILE too: nodes serve only keys that they allow",
                           sherd__opt_where(cli, "nodes"));
    snprintf(s->key, sizeof s->key, "%s", key);
    return 0;
}

/* Finds the source without a key, which is not needed to read the node file. */
static int source_to_read(source *s, sherd__cli *cli, sherd_diag *d)
{
    if (sherd__opt_text(cli, "nodes") == NULL) return find_source(s, cli, d);
    memset(s, 0, sizeof *s);
    snprintf(s->nodes, sizeof s->nodes, "%s", sherd__opt_text(cli, "nodes"));
    return 0;
}

int sherd__nodes_file(char *file, size_t size, bool *same_host, sherd__cli *cli, sherd_diag *d)
{
    source s;
    int err = source_to_read(&s, cli, d);
    if (err) return err;
    snprintf(file, size, "%s", s.nodes);
    *same_host = s.ours || sherd__opt_flag(cli, "same-host-domains");
    return 0;
}

int sherd__nodes_count(uint32_t *out, bool *here, sherd__cli *cli, sherd_diag *d)
{
    source s;
    sherd__peers peers;
    bool local = true;
    int err = source_to_read(&s, cli, d);
    if (err) return err;
    if (here) *here = true;
    if (s.local > 0) {
        *out = s.local;
        return 0;
    }
    err = sherd__peers_load(&peers, s.nodes, d);
    if (err) return err;
    uint32_t n = 0;
    for (size_t i = 0; i < peers.len; i++) {
        if (strcmp(peers.list[i].role, "coordinator") == 0) continue;
        local = local && sherd__peer_loopback(&peers.list[i]);
        n++;
    }
    if (here) *here = local;
    sherd__peers_fini(&peers);
    if (n == 0)
        return sherd__fail(d, SHERD_EFORMAT, "paste the lines that nodes print when they start",
                           "%s: lists no node", s.nodes);
    *out = n;
    return 0;
}

static bool is_node(const sherd__peer *p)
{
    return strcmp(p->role, "coordinator") != 0;
}

/* Returns the first node of the domain of node i. */
static const sherd__peer *first_of_domain(const sherd__peers *peers, size_t i)
{
    size_t j = 0;
    while (!is_node(&peers->list[j]) || strcmp(peers->list[j].domain, peers->list[i].domain) != 0)
        j++;
    return &peers->list[j];
}

/* Checks that all nodes have a domain. */
static int suit_domains(const char *file, const sherd__peers *peers, uint64_t least, sherd_diag *d)
{
    const sherd__peer *one = NULL, *other = NULL;
    uint64_t n = 0, domains = 0;
    for (size_t i = 0; i < peers->len; i++) {
        const sherd__peer *p = &peers->list[i], *first;
        if (!is_node(p)) continue;
        n++;
        first = first_of_domain(peers, i);
        domains += first == p;
        if (first != p && !one) one = first, other = p;
    }
    if (domains >= least || !one) return 0;
    return sherd__fail(d, SHERD_EFEWNODES,
                       "list nodes that others run, or lower --colluding or --spare",
                       "%s:%" PRIu32 ": domain=%s is that of line %" PRIu32 ", too: %" PRIu64
                       " nodes of %" PRIu64 " domain%s are listed, and %" PRIu64
                       " domains or more are needed",
                       file, other->line, other->domain, one->line, n, domains,
                       domains == 1 ? "" : "s", least);
}

static int suit_file(const char *file, const sherd__peers *peers, uint64_t least, sherd_diag *d)
{
    uint64_t n = 0;
    for (size_t i = 0; i < peers->len; i++) {
        const sherd__peer *p = &peers->list[i];
        if (!is_node(p)) continue;
        n++;
        if (!p->domain[0])
            return sherd__fail(d, SHERD_EFORMAT,
                               "give every node's line the name of who runs it, as domain=NAME",
                               "%s:%" PRIu32 ": %s:%u has no domain= in the node file: a private "
                               "scheme must know which nodes are one adversary",
                               file, p->line, p->host, p->port);
    }
    if (n >= least) return suit_domains(file, peers, least, d);
    return sherd__fail(d, SHERD_EFEWNODES, "list more nodes, or lower --colluding or --spare",
                       "%s lists %" PRIu64 " node%s, and %" PRIu64 " or more are needed", file, n,
                       n == 1 ? "" : "s", least);
}

int sherd__nodes_suit(sherd__cli *cli, const sherd_product_options *opt, sherd_diag *d)
{
    source s;
    sherd__peers peers = { 0 };
    uint64_t least = sherd__prepare_least(opt);
    char hint[80];
    if (least == 1) return 0; /* one node is enough for the scheme */
    int err = source_to_read(&s, cli, d);
    if (err) return err;
    if (s.local == 0) {
        err = sherd__peers_load(&peers, s.nodes, d);
        if (!err) err = suit_file(s.nodes, &peers, least, d);
        sherd__peers_fini(&peers);
        return err;
    }
    if (s.local >= least) return 0;
    snprintf(hint, sizeof hint, "-n %" PRIu64 "%s", least,
             opt->colluding > 1 || opt->spare > 0 ? ", or lower --colluding or --spare" : "");
    return sherd__fail(d, SHERD_EFEWNODES, hint,
                       "-n %" PRIu32 ": --scheme %s with --colluding %" PRIu32
                       " and --spare %" PRIu32 " needs %" PRIu64 " or more",
                       s.local, sherd_scheme_describe(opt->scheme)->name, opt->colluding,
                       opt->spare, least);
}

static bool interrupted(void *ctx)
{
    (void)ctx;
    return sherd__cli_interrupted() != 0;
}

void sherd__nodes_log(const sherd__cli *cli, sherd_log_level level, const char *text)
{
    if (level == SHERD_LOG_WARN) sherd__cli_warn(cli, "%s", text);
    else if (level == SHERD_LOG_INFO || cli->verbose > 1) sherd__cli_note(cli, "%s", text);
}

static void log_line(void *ctx, sherd_log_level level, const char *text)
{
    sherd__nodes_log(ctx, level, text);
}

/* Starting many nodes takes a while, and nodes beyond the number of cores share them. */
static void say_start(const sherd__cli *cli, uint32_t nodes)
{
    uint32_t cores = sherd__cpu_usable();
    if (nodes > cores)
        sherd__cli_say(cli, "starting %u nodes, which share the %u core%s of this machine", nodes,
                       cores, cores == 1 ? "" : "s");
}

/* Sets how many nodes are the least for a result, and how many are spare. */
static void say_needs(sherd_cluster_options *o, const sherd_product_options *work)
{
    uint64_t least = work ? sherd__prepare_least(work) : 1;
    o->nodes_min = 1; /* other nodes take over the work of lost ones, as far as the scheme allows */
    if (least == 1) return;
    o->nodes_min = (uint32_t)(least - work->spare);
    o->spare = work->spare;
}

int sherd__nodes_open(sherd_cluster **out, sherd__cli *cli, const sherd_product_options *work,
                      sherd_diag *d)
{
    source s;
    *out = NULL;
    int err = find_source(&s, cli, d);
    if (err) return err;
    sherd_cluster_options opt = {
        .size = sizeof opt,
        .timeout_ms = sherd__opt_time_ms(cli, "timeout"),
        .local_nodes = s.local,
        .program = SHERD__SELF,
        .node_memory = sherd__opt_size(cli, "node-memory"),
        .unbound = sherd__opt_choice(cli, "bind-to") == SHERD__BIND_NONE,
        .nodes_file = s.local > 0 ? NULL : s.nodes,
        .key_file = s.local > 0 ? NULL : s.key,
        .same_host_domains = s.ours || sherd__opt_flag(cli, "same-host-domains"),
        .record_dir = sherd__opt_text(cli, "record"),
        .hooks = { .interrupted = interrupted, .log = log_line, .ctx = cli },
    };
    say_needs(&opt, work);
    if (s.local > 0) say_start(cli, s.local);
    return sherd_cluster_open(out, &opt, d);
}
