/*
 * `sherd cluster up -n 7`, `status`, `down`: local nodes that outlive a command, for later
 * commands. Their state is in one folder that only this user can access (its place: cli/nodes.h):
 * the node file, the key that those nodes allow, each node's output, and "state", which identifies
 * the processes by pid and start time, so that a pid reused by the system is never taken for a
 * node.
 *
 * The node file is written last and removed first: a cluster counts as up if it exists. Until they
 * are released, the nodes end with this process, so that an interrupted `up` leaves none running.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/nodes.h"
#include "cli/process.h"
#include "core/alloc.h"
#include "scheduler/cluster/launch.h"

#define STATE "state"
#define LOCK "lock"
#define NODES_MAX 1000
#define TERM_MS 5000

/* One node of the state file. */
typedef struct member {
    pid_t pid;
    uint64_t started;
    char name[64], address[280];
} member;

typedef struct state {
    char folder[PATH_MAX - 80];
    int lock; /* held from open_state to close_state */
    member *members;
    size_t len;
} state;

static void path_of(const state *s, const char *name, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s/%s", s->folder, name);
}

/* ---- state file ------------------------------------------------------------------------------ */

static bool lives(const member *m)
{
    return m->pid > 0 && sherd__process_started(m->pid) == m->started;
}

static size_t living(const state *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->len; i++) n += lives(&s->members[i]);
    return n;
}

static int read_member(member *m, json_t *obj)
{
    const char *name, *address;
    json_int_t pid, started;
    if (json_unpack(obj, "{s:I, s:I, s:s, s:s}", "pid", &pid, "started", &started, "name", &name,
                    "address", &address) != 0 ||
        pid <= 1 || pid > INT_MAX || started <= 0)
        return SHERD_EFORMAT;
    *m = (member){ .pid = (pid_t)pid, .started = (uint64_t)started };
    snprintf(m->name, sizeof m->name, "%s", name);
    snprintf(m->address, sizeof m->address, "%s", address);
    return 0;
}

static int read_state(state *s, sherd_diag *d)
{
    char path[PATH_MAX];
    path_of(s, STATE, path);
    if (access(path, F_OK) != 0) return 0;
    json_t *all = json_load_file(path, 0, NULL);
    size_t len = json_array_size(all);
    int err = all && json_is_array(all) && len <= NODES_MAX ? 0 : SHERD_EFORMAT;
    if (!err && !(s->members = sherd__calloc(len, sizeof *s->members))) err = SHERD_ENOMEM;
    for (size_t i = 0; i < len && !err; i++) {
        err = read_member(&s->members[i], json_array_get(all, i));
        if (!err) s->len++;
    }
    json_decref(all);
    if (!err) return 0;
    return sherd__fail(d, err, "end the nodes by hand (pgrep -af 'sherd node') and remove it",
                       "%s is not a state file of sherd cluster", path);
}

/* Creates a file that only this user can access, whatever the umask and whatever existed before. */
static FILE *create(const char *path)
{
    if (unlink(path) != 0 && errno != ENOENT) return NULL;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (fd >= 0 && !f) close(fd);
    return f;
}

static int write_state(const state *s, const sherd__launch *l, sherd_diag *d)
{
    char path[PATH_MAX];
    json_t *all = json_array();
    path_of(s, STATE, path);
    for (uint32_t i = 0; i < sherd__launch_len(l); i++) {
        const sherd__launched *n = sherd__launch_node(l, i);
        char address[280];
        snprintf(address, sizeof address, "%s:%u", n->peer.host, n->peer.port);
        json_array_append_new(all, json_pack("{s:I, s:I, s:s, s:s}", "pid", (json_int_t)n->pid,
                                             "started", (json_int_t)n->started, "name",
                                             n->peer.name, "address", address));
    }
    FILE *f = create(path);
    bool ok = f && json_dumpf(all, f, JSON_INDENT(1)) == 0;
    if (f && fclose(f) != 0) ok = false;
    json_decref(all);
    if (ok) return 0;
    return sherd__fail(d, SHERD_EIO, NULL, "cannot write %s: %s", path, strerror(errno));
}

/* Writes the node file atomically. */
static int write_nodes(const state *s, const sherd__launch *l, sherd_diag *d)
{
    char path[PATH_MAX], fresh[PATH_MAX], line[1200];
    path_of(s, SHERD__CLUSTER_NODES, path);
    path_of(s, SHERD__CLUSTER_NODES ".new", fresh);
    FILE *f = create(fresh);
    bool ok = f != NULL;
    for (uint32_t i = 0; ok && i < sherd__launch_len(l); i++) {
        sherd__peer p = sherd__launch_node(l, i)->peer;
        snprintf(p.domain, sizeof p.domain, "simulated-%u", i + 1);
        sherd__peer_format(&p, line, sizeof line);
        ok = fprintf(f, "%s\n", line) > 0;
    }
    if (f && fclose(f) != 0) ok = false;
    if (ok && rename(fresh, path) == 0) return 0;
    return sherd__fail(d, SHERD_EIO, NULL, "cannot write %s: %s", path, strerror(errno));
}

/* ---- folder ---------------------------------------------------------------------------------- */

static int no_cluster(sherd_diag *d)
{
    return sherd__fail(d, SHERD_EFEWNODES, "sherd cluster up -n 7", "no local cluster is up");
}

static void close_state(state *s)
{
    if (s->lock >= 0) close(s->lock);
    sherd__free(s->members);
}

/* Finds (or creates) the folder, checks that only this user can access it, takes the lock, and
 * reads the state. */
static int open_state(state *s, bool make, sherd_diag *d)
{
    char path[PATH_MAX];
    struct stat st;
    *s = (state){ .lock = -1 };
    if (sherd__nodes_folder(s->folder, sizeof s->folder))
        return sherd__fail(d, SHERD_EINVAL, "unset XDG_RUNTIME_DIR, or set it to a shorter path",
                           "the path of the state folder is too long");
    if (make && mkdir(s->folder, 0700) != 0 && errno != EEXIST)
        return sherd__fail(d, SHERD_EOPEN, NULL, "cannot make %s: %s", s->folder, strerror(errno));
    if (lstat(s->folder, &st) != 0) return no_cluster(d);
    if (!S_ISDIR(st.st_mode) || st.st_uid != getuid() || (st.st_mode & 077) != 0)
        return sherd__fail(d, SHERD_EOPEN, "remove it, or point XDG_RUNTIME_DIR elsewhere",
                           "%s is not a folder that is ours alone (mode 0700)", s->folder);
    path_of(s, LOCK, path);
    s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock < 0)
        return sherd__fail(d, SHERD_EOPEN, NULL, "cannot open %s: %s", path, strerror(errno));
    if (flock(s->lock, LOCK_EX | LOCK_NB) != 0)
        return sherd__fail(d, SHERD_EBUSY, "wait for it",
                           "another sherd cluster command is running");
    return read_state(s, d);
}

/* Removes the output of the nodes of this or an interrupted `up`. */
static void remove_logs(const state *s)
{
    DIR *dir = opendir(s->folder);
    if (!dir) return;
    for (struct dirent *e; (e = readdir(dir));) {
        size_t len = strlen(e->d_name);
        if (len > 4 && strncmp(e->d_name, "node-", 5) == 0 &&
            strcmp(e->d_name + len - 4, ".log") == 0)
            unlinkat(dirfd(dir), e->d_name, 0);
    }
    closedir(dir);
}

static void remove_files(const state *s)
{
    static const char *const names[] = { SHERD__CLUSTER_NODES, SHERD__CLUSTER_NODES ".new",
                                         SHERD__CLUSTER_KEY, STATE };
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        path_of(s, names[i], path);
        unlink(path);
    }
    remove_logs(s);
}

/* ---- up -------------------------------------------------------------------------------------- */

static bool interrupted(void *ctx)
{
    (void)ctx;
    return sherd__cli_interrupted() != 0;
}

static json_t *launched_json(const sherd__launch *l)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < sherd__launch_len(l); i++) {
        const sherd__launched *n = sherd__launch_node(l, i);
        char line[1200];
        sherd__peer_format(&n->peer, line, sizeof line);
        json_array_append_new(all, json_pack("{s:s, s:I, s:s}", "name", n->peer.name, "pid",
                                             (json_int_t)n->pid, "line", line));
    }
    return all;
}

static int tell_up(sherd__cli *cli, const state *s, const sherd__launch *l, sherd_diag *d)
{
    uint32_t len = sherd__launch_len(l);
    if (cli->json) {
        json_t *obj = sherd__cli_json_new(cli);
        json_object_set_new(obj, "nodes", launched_json(l));
        json_object_set_new(obj, "folder", sherd__cli_json_text(s->folder));
        return sherd__cli_json_end(cli, obj, d);
    }
    for (uint32_t i = 0; i < len; i++) {
        const sherd__launched *n = sherd__launch_node(l, i);
        printf("%-9s pid %-7ld %s:%u\n", n->peer.name, (long)n->pid, n->peer.host, n->peer.port);
    }
    sherd__cli_say(cli,
                   "%u node%s up; commands without -n and --nodes use %s now; end with: sherd "
                   "cluster down",
                   len, len == 1 ? " is" : "s are", len == 1 ? "it" : "them");
    return 0;
}

static int start_nodes(sherd__cli *cli, state *s, sherd_diag *d)
{
    char key[PATH_MAX];
    sherd_identity *id = NULL;
    sherd__launch *l = NULL;
    sherd__launch_options o = { .nodes = (uint32_t)sherd__opt_int(cli, "local"),
                                .program = SHERD__SELF,
                                .memory = sherd__opt_size(cli, "node-memory"),
                                .threads = (uint32_t)sherd__opt_int(cli, "threads"),
                                .unbound = sherd__opt_choice(cli, "bind-to") == SHERD__BIND_NONE,
                                .log_dir = s->folder,
                                .hooks = { .interrupted = interrupted } };
    path_of(s, SHERD__CLUSTER_KEY, key);
    int err = sherd_identity_new(&id, d);
    if (!err) err = sherd_identity_save(id, key, d);
    if (!err) o.allow = *sherd__identity_fingerprint(id);
    if (!err) err = sherd__launch_start(&l, &o, d);
    if (!err) err = write_state(s, l, d);
    if (!err) err = write_nodes(s, l, d);
    if (!err) err = tell_up(cli, s, l, d);
    if (err) {
        sherd__launch_stop(l, 0);
        remove_files(s);
    } else {
        sherd__launch_release(l);
    }
    sherd_identity_free(id);
    return err;
}

static int up_already(const state *s, sherd_diag *d)
{
    static const char hint[] = "sherd cluster status, or sherd cluster down first";
    size_t up = living(s);
    if (up < s->len)
        return sherd__fail(d, SHERD_EINVAL, hint,
                           "a local cluster is up already, though %zu of its %zu nodes are gone",
                           s->len - up, s->len);
    return sherd__fail(d, SHERD_EINVAL, hint, "a local cluster of %zu node%s is up already", up,
                       up == 1 ? "" : "s");
}

static int run_up(sherd__cli *cli, sherd_diag *d)
{
    state s;
    int err = open_state(&s, true, d);
    if (!err && living(&s)) err = up_already(&s, d);
    if (!err) {
        remove_files(&s); /* of a cluster whose nodes have ended */
        err = start_nodes(cli, &s, d);
    }
    close_state(&s);
    return err;
}

/* ---- status ---------------------------------------------------------------------------------- */

static uint64_t resident(pid_t pid)
{
    char path[64];
    unsigned long long all, pages = 0;
    snprintf(path, sizeof path, "/proc/%ld/statm", (long)pid);
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    if (fscanf(f, "%llu %llu", &all, &pages) != 2) pages = 0;
    fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* err: 0, or an error that `status` returns after it has printed the state. */
static int tell_status(sherd__cli *cli, const state *s, int err, sherd_diag *d)
{
    json_t *all = json_array();
    char bytes[24];
    for (size_t i = 0; i < s->len; i++) {
        const member *m = &s->members[i];
        bool up = lives(m);
        uint64_t memory = up ? resident(m->pid) : 0;
        /* The pid of a node that has ended may belong to another process by now. */
        json_t *pid = up ? json_integer(m->pid) : json_null();
        json_array_append_new(all, json_pack("{s:s, s:o, s:s, s:b, s:I}", "name", m->name, "pid",
                                             pid, "address", m->address, "up", up, "resident",
                                             (json_int_t)memory));
        if (cli->json) continue;
        if (up)
            printf("%-9s up    pid %-7ld %-22s %s\n", m->name, (long)m->pid, m->address,
                   sherd__cli_bytes(memory, bytes));
        else
            printf("%-9s gone  %-11s %-22s what it said: %s/%s.log\n", m->name, "", m->address,
                   s->folder, m->name);
    }
    if (!cli->json) {
        json_decref(all);
        return err;
    }
    json_t *obj = sherd__cli_json_new(cli);
    json_object_set_new(obj, "nodes", all);
    return err ? sherd__cli_json_fail(cli, obj, err, d) : sherd__cli_json_end(cli, obj, d);
}

static int run_status(sherd__cli *cli, sherd_diag *d)
{
    state s;
    int err = open_state(&s, false, d);
    if (!err && s.len == 0) err = no_cluster(d);
    if (!err) {
        if (living(&s) < s.len)
            err = sherd__fail(d, SHERD_EFEWNODES, "sherd cluster down, then up again",
                              "%zu of %zu local nodes are gone", s.len - living(&s), s.len);
        err = tell_status(cli, &s, err, d);
    }
    close_state(&s);
    return err;
}

/* ---- down ------------------------------------------------------------------------------------ */

/* Returns a pidfd of exactly the process in the state, or -1 if it has ended. */
static int handle_of(const member *m)
{
    int fd = pidfd_open(m->pid, 0);
    if (fd >= 0 && !lives(m)) { /* the pidfd is open: the pid cannot be reused */
        close(fd);
        return -1;
    }
    return fd;
}

static void send_all(const state *s, int signal)
{
    for (size_t i = 0; i < s->len; i++) {
        int fd = handle_of(&s->members[i]);
        if (fd < 0) continue;
        (void)pidfd_send_signal(fd, signal, NULL, 0);
        close(fd);
    }
}

static bool all_gone(const state *s, int ms)
{
    struct timespec pause = { .tv_nsec = 10000000 };
    for (int waited = 0; living(s); waited += 10) {
        if (waited >= ms) return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static int end_nodes(sherd__cli *cli, state *s, sherd_diag *d)
{
    size_t up = living(s);
    char path[PATH_MAX];
    path_of(s, SHERD__CLUSTER_NODES, path);
    unlink(path);
    send_all(s, SIGTERM);
    if (!all_gone(s, TERM_MS)) send_all(s, SIGKILL);
    if (!all_gone(s, TERM_MS))
        return sherd__fail(d, SHERD_EBUSY, "try again", "%zu local nodes cannot be ended",
                           living(s));
    remove_files(s);
    path_of(s, LOCK, path);
    unlink(path);
    rmdir(s->folder);
    if (cli->json) {
        json_t *obj = sherd__cli_json_new(cli);
        json_object_set_new(obj, "ended", json_integer((json_int_t)up));
        return sherd__cli_json_end(cli, obj, d);
    }
    sherd__cli_say(cli, "ended %zu node%s", up, up == 1 ? "" : "s");
    return 0;
}

static int run_down(sherd__cli *cli, sherd_diag *d)
{
    state s;
    int err = open_state(&s, false, d);
    if (!err && s.len == 0) err = no_cluster(d);
    if (!err) err = end_nodes(cli, &s, d);
    close_state(&s);
    return err;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

/* clang-format off */
static const sherd__option up_options[] = {
    { .name = "local", .letter = 'n', .type = SHERD__INT, .arg = "N", .min = 1, .max = NODES_MAX,
      .flags = SHERD__OPT_REQUIRED, .help = "how many nodes" },
    SHERD__OPT_NODE_MEMORY,
    SHERD__OPT_BIND_TO,
    { .name = "threads", .type = SHERD__INT, .arg = "N", .min = 1, .max = 4096,
      .help = "threads of each node [cores / N, at least 1]" },
    { 0 },
};
/* clang-format on */

static const sherd__option no_options[] = { { 0 } };

static const sherd__example up_examples[] = {
    { "sherd cluster up -n 7", "starts seven nodes on this machine" },
    { "sherd cluster up -n 2 --node-memory 4G", "two, which store 4 GB each" },
    { "sherd multiply A.npy B.npy -o C.npy", "uses them" },
    { 0 },
};

static const sherd__example status_examples[] = {
    { "sherd cluster status", "one line for each node" },
    { "sherd cluster status --json", "the same for programs" },
    { "sherd cluster status || sherd cluster up -n 7", "starts them if they are not there" },
    { 0 },
};

static const sherd__example down_examples[] = {
    { "sherd cluster down", "ends the local nodes" },
    { "sherd cluster down -q", "without a word" },
    { "sherd cluster down && sherd cluster up -n 3", "another number of them" },
    { 0 },
};

static const sherd__verb up = {
    .name = "up",
    .usage = "-n N",
    .summary = "start local nodes that outlive this command",
    .details = "Starts N nodes on this machine, each its own process with its own key and a port "
               "that the system chooses. Commands with neither -n nor --nodes use them until "
               "`sherd cluster down`.",
    .examples = up_examples,
    .options = up_options,
    .run = run_up,
};

static const sherd__verb status = {
    .name = "status",
    .usage = "",
    .summary = "say how they are; exit 7 where some are gone",
    .examples = status_examples,
    .options = no_options,
    .run = run_status,
};

static const sherd__verb down = {
    .name = "down",
    .usage = "",
    .summary = "end them",
    .examples = down_examples,
    .options = no_options,
    .run = run_down,
};

static const sherd__verb *const subs[] = { &up, &status, &down, NULL };

const sherd__verb sherd__verb_cluster = {
    .name = "cluster",
    .usage = "up|status|down",
    .summary = "keep local nodes running between commands",
    .subs = subs,
};
