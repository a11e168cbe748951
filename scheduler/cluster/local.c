/*
 * Local nodes that outlive the process that starts them. Their state is in one folder that only
 * this user can access: the node file, the key that those nodes allow, each node's output, and
 * "state", which identifies the processes by pid and start time, so that a pid reused by the system
 * is never taken for a node. The folder is trusted only if it belongs to this user and no other
 * user can access it: in /tmp any user could create a folder of that name.
 *
 * The node file is written last and removed first: a cluster counts as up if it exists. Until they
 * are released, the nodes end with this process, so that an interrupted start leaves none running.
 */
#include "sherd/local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h> /* glibc has functions for pidfds from 2.36 on only */
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/field.h"
#include "core/options.h"
#include "scheduler/cluster/launch.h"
#include "scheduler/cluster/running.h"

#define NODES "nodes"
#define KEY "key"
#define STATE "state"
#define LOCK "lock"
#define NODES_MAX 1000u
#define TERM_MS 5000

/* One node of the state file. */
typedef struct member {
    pid_t pid;
    uint64_t started;
    char name[64], address[280], line[SHERD_PEER_LINE_SIZE];
} member;

typedef struct state {
    char folder[PATH_MAX - 80];
    int lock;    /* held from open_state to close_state */
    bool exists; /* the state file, when it was read */
    member *members;
    size_t len;
} state;

struct sherd_local {
    char folder[PATH_MAX - 80];
    uint32_t len;
    sherd_local_node nodes[];
};

/* ---- folder ---------------------------------------------------------------------------------- */

static int find_folder(char *out, size_t size, const char *folder, sherd_diag *d)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int n = folder ? snprintf(out, size, "%s", folder)
            : runtime && *runtime == '/'
                ? snprintf(out, size, "%s/sherd", runtime)
                : snprintf(out, size, "/tmp/sherd-%lu", (unsigned long)getuid());
    if (n > 0 && (size_t)n < size) return SHERD_OK;
    return sherd__fail(d, SHERD_EINVAL, "unset XDG_RUNTIME_DIR, or set it to a shorter path",
                       "the path of the state folder is too long");
}

static int no_cluster(sherd_diag *d)
{
    return sherd__fail(d, SHERD_EFEWNODES, "sherd cluster up -n 7", "no local cluster is up");
}

static int check_folder(const char *folder, sherd_diag *d)
{
    struct stat st;
    if (lstat(folder, &st) != 0) return no_cluster(d);
    if (S_ISDIR(st.st_mode) && st.st_uid == getuid() && (st.st_mode & 077) == 0) return SHERD_OK;
    return sherd__fail(d, SHERD_EOPEN,
                       "check who made it; remove it, or set XDG_RUNTIME_DIR to another folder",
                       "%s is not a folder that only this user can access (mode 0700): a local "
                       "cluster in it is not trusted",
                       folder);
}

static void path_of(const state *s, const char *name, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s/%s", s->folder, name);
}

int sherd__running_find(sherd__running *out, const char *folder, sherd_diag *d)
{
    state s;
    int err = find_folder(s.folder, sizeof s.folder, folder, d);
    if (!err) err = check_folder(s.folder, d);
    if (err) return err;
    path_of(&s, NODES, out->nodes);
    path_of(&s, KEY, out->key);
    return access(out->nodes, F_OK) == 0 ? SHERD_OK : no_cluster(d);
}

int sherd_local_nodes_file(const char *folder, char *out, size_t size, sherd_diag *d)
{
    sherd__running r;
    int err = sherd__running_find(&r, folder, d);
    if (!err && strlen(r.nodes) >= size)
        err = sherd__fail(d, SHERD_EINVAL, NULL, "%s is longer than %zu bytes", r.nodes, size);
    if (!err) snprintf(out, size, "%s", r.nodes);
    return err;
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
    return SHERD_OK;
}

static int read_state(state *s, sherd_diag *d)
{
    char path[PATH_MAX];
    path_of(s, STATE, path);
    if (access(path, F_OK) != 0) return SHERD_OK;
    s->exists = true;
    json_t *all = json_load_file(path, 0, NULL);
    size_t len = json_array_size(all);
    int err = all && json_is_array(all) && len <= NODES_MAX ? SHERD_OK : SHERD_EFORMAT;
    if (!err && !(s->members = sherd__calloc(len, sizeof *s->members))) err = SHERD_ENOMEM;
    for (size_t i = 0; i < len && !err; i++) {
        err = read_member(&s->members[i], json_array_get(all, i));
        if (!err) s->len++;
    }
    json_decref(all);
    if (!err) return SHERD_OK;
    return sherd__fail(d, err, "end the nodes by hand (pgrep -af 'sherd node') and remove it",
                       "%s is not a state file of sherd cluster", path);
}

/* Takes the nodes' lines from the node file, as far as it is there. Domains are those of the file
 * only: a simulation of several. */
static void read_lines(state *s)
{
    char path[PATH_MAX];
    sherd__peers peers = { 0 };
    path_of(s, NODES, path);
    if (sherd__peers_load(&peers, path, NULL)) return;
    for (size_t i = 0; i < peers.len && i < s->len; i++) {
        sherd__peer *p = &peers.list[i];
        p->domain[0] = '\0';
        if (strcmp(p->name, s->members[i].name) == 0)
            sherd__peer_format(p, s->members[i].line, sizeof s->members[i].line);
    }
    sherd__peers_fini(&peers);
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

/* Takes the nodes that were started. */
static int take_members(state *s, const sherd__launch *l, sherd_diag *d)
{
    uint32_t len = sherd__launch_len(l);
    sherd__free(s->members);
    s->len = 0;
    s->members = sherd__calloc(len, sizeof *s->members);
    if (!s->members) return sherd__fail_memory(d, "%u nodes", len);
    for (; s->len < len; s->len++) {
        const sherd__launched *n = sherd__launch_node(l, (uint32_t)s->len);
        member *m = &s->members[s->len];
        *m = (member){ .pid = n->pid, .started = n->started };
        snprintf(m->name, sizeof m->name, "%s", n->peer.name);
        snprintf(m->address, sizeof m->address, "%s:%u", n->peer.host, n->peer.port);
        sherd__peer_format(&n->peer, m->line, sizeof m->line);
    }
    return SHERD_OK;
}

static int write_state(const state *s, sherd_diag *d)
{
    char path[PATH_MAX];
    json_t *all = json_array();
    path_of(s, STATE, path);
    for (size_t i = 0; i < s->len; i++) {
        const member *m = &s->members[i];
        json_array_append_new(all, json_pack("{s:I, s:I, s:s, s:s}", "pid", (json_int_t)m->pid,
                                             "started", (json_int_t)m->started, "name", m->name,
                                             "address", m->address));
    }
    FILE *f = create(path);
    bool ok = f && json_dumpf(all, f, JSON_INDENT(1)) == 0;
    if (f && fclose(f) != 0) ok = false;
    json_decref(all);
    if (ok) return SHERD_OK;
    return sherd__fail(d, SHERD_EIO, NULL, "cannot write %s: %s", path, strerror(errno));
}

/* Writes the node file atomically. */
static int write_nodes(const state *s, const sherd__launch *l, sherd_diag *d)
{
    char path[PATH_MAX], fresh[PATH_MAX], line[SHERD_PEER_LINE_SIZE];
    path_of(s, NODES, path);
    path_of(s, NODES ".new", fresh);
    FILE *f = create(fresh);
    bool ok = f != NULL;
    for (uint32_t i = 0; ok && i < sherd__launch_len(l); i++) {
        sherd__peer p = sherd__launch_node(l, i)->peer;
        snprintf(p.domain, sizeof p.domain, "simulated-%u", i + 1);
        sherd__peer_format(&p, line, sizeof line);
        ok = fprintf(f, "%s\n", line) > 0;
    }
    if (f && fclose(f) != 0) ok = false;
    if (ok && rename(fresh, path) == 0) return SHERD_OK;
    return sherd__fail(d, SHERD_EIO, NULL, "cannot write %s: %s", path, strerror(errno));
}

static void close_state(state *s)
{
    if (s->lock >= 0) close(s->lock);
    sherd__free(s->members);
}

/* Finds (or creates) the folder, checks that only this user can access it, takes the lock, and
 * reads the state. */
static int open_state(state *s, const char *folder, bool make, sherd_diag *d)
{
    char path[PATH_MAX];
    *s = (state){ .lock = -1 };
    int err = find_folder(s->folder, sizeof s->folder, folder, d);
    if (err) return err;
    if (make && mkdir(s->folder, 0700) != 0 && errno != EEXIST)
        return sherd__fail(d, SHERD_EOPEN, NULL, "cannot make %s: %s", s->folder, strerror(errno));
    err = check_folder(s->folder, d);
    if (err) return err;
    path_of(s, LOCK, path);
    s->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->lock < 0)
        return sherd__fail(d, SHERD_EOPEN, NULL, "cannot open %s: %s", path, strerror(errno));
    if (flock(s->lock, LOCK_EX | LOCK_NB) != 0)
        return sherd__fail(d, SHERD_EBUSY, "wait for it",
                           "another sherd cluster command is running");
    return read_state(s, d);
}

/* Refuses a folder without a state file that contains anything else: a start removes the files of
 * an earlier cluster, and these are not such files. */
static int check_unused(const state *s, sherd_diag *d)
{
    DIR *dir = opendir(s->folder);
    int err = dir ? SHERD_OK
                  : sherd__fail(d, SHERD_EOPEN, NULL, "cannot read %s: %s", s->folder,
                                strerror(errno));
    for (struct dirent *e; !err && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            strcmp(e->d_name, LOCK) != 0)
            err = sherd__fail(d, SHERD_EOPEN, "name a folder for the nodes alone",
                              "%s contains %s, and no cluster was started in it", s->folder,
                              e->d_name);
    if (dir) closedir(dir);
    return err;
}

/* Removes the output of the nodes of this or an interrupted start. */
static void remove_logs(const state *s)
{
    DIR *dir = opendir(s->folder);
    if (!dir) return;
    for (struct dirent *e; (e = readdir(dir));) {
        size_t len = strlen(e->d_name);
        if (len > 4 && strncmp(e->d_name, "node-", 5) == 0 &&
            strcmp(e->d_name + 5 + strspn(e->d_name + 5, "0123456789"), ".log") == 0)
            unlinkat(dirfd(dir), e->d_name, 0);
    }
    closedir(dir);
}

static void remove_files(const state *s)
{
    static const char *const names[] = { NODES, NODES ".new", KEY, STATE };
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        path_of(s, names[i], path);
        unlink(path);
    }
    remove_logs(s);
}

/* ---- what is seen ---------------------------------------------------------------------------- */

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

static int look(sherd_local **out, const state *s, sherd_diag *d)
{
    sherd_local *l = sherd__calloc(1, sizeof *l + s->len * sizeof *l->nodes);
    if (!l) return sherd__fail_memory(d, "the state of a cluster");
    memcpy(l->folder, s->folder, sizeof l->folder);
    for (; l->len < s->len; l->len++) {
        const member *m = &s->members[l->len];
        sherd_local_node *n = &l->nodes[l->len];
        n->up = lives(m);
        /* The pid of a node that has ended may belong to another process by now. */
        n->pid = n->up ? m->pid : 0;
        n->resident = n->up ? resident(m->pid) : 0;
        memcpy(n->name, m->name, sizeof n->name);
        memcpy(n->address, m->address, sizeof n->address);
        memcpy(n->line, m->line, sizeof n->line);
        snprintf(n->log, sizeof n->log, "%s/%s.log", s->folder, m->name);
    }
    *out = l;
    return SHERD_OK;
}

const char *sherd_local_folder(const sherd_local *l)
{
    return l->folder;
}

uint32_t sherd_local_count(const sherd_local *l)
{
    return l->len;
}

int sherd_local_at(const sherd_local *l, uint32_t i, sherd_local_node *out, sherd_diag *d)
{
    int err = sherd__result_check(out, "sherd_local_node", d);
    if (err) return err;
    if (i >= l->len)
        return sherd__fail(d, SHERD_EINVAL, NULL, "there is no node %u: there are %u", i, l->len);
    sherd__result_write(out, &l->nodes[i], sizeof l->nodes[i]);
    return SHERD_OK;
}

void sherd_local_free(sherd_local *l)
{
    sherd__free(l);
}

static const sherd_field local_node_fields[] = {
    SHERD__FIELD(sherd_local_node, name, TEXT, "", "name"),
    SHERD__FIELD(sherd_local_node, pid, I64, "", "process"),
    SHERD__FIELD(sherd_local_node, address, TEXT, "", "host:port"),
    SHERD__FIELD(sherd_local_node, up, BOOL, "", "the node's process runs"),
    SHERD__FIELD(sherd_local_node, resident, U64, "bytes", "memory that the node's process holds"),
    SHERD__FIELD(sherd_local_node, line, TEXT, "", "the node's line of a node file"),
    SHERD__FIELD(sherd_local_node, log, TEXT, "", "file with the node's messages"),
};
SHERD__FIELDS(sherd_local_node, local_node_fields)

/* ---- start ----------------------------------------------------------------------------------- */

static int start_nodes(state *s, const sherd_local_options *o, sherd_local **out, sherd_diag *d)
{
    char key[PATH_MAX];
    sherd_identity *id = NULL;
    sherd__launch *l = NULL;
    sherd__launch_options how = { .nodes = o->nodes,
                                  .program = o->program,
                                  .verb = o->program_verb,
                                  .memory = o->node_memory,
                                  .threads = o->threads,
                                  .unbound = o->unbound,
                                  .log_dir = s->folder,
                                  .hooks = o->hooks,
                                  .on = { .backend = o->backend,
                                          .devices = o->devices,
                                          .each = o->devices_each,
                                          .opencl_library = o->opencl_library,
                                          .cuda_library = o->cuda_library } };
    path_of(s, KEY, key);
    s->len = 0;
    int err = write_state(s, d); /* first: what an interrupted start leaves can be removed */
    if (!err) err = sherd_identity_new(&id, d);
    if (!err) err = sherd_identity_save(id, key, d);
    if (!err) how.allow = *sherd__identity_fingerprint(id);
    if (!err) err = sherd__launch_start(&l, &how, d);
    if (!err) err = take_members(s, l, d);
    if (!err) err = write_state(s, d);
    if (!err) err = write_nodes(s, l, d);
    if (!err && out) err = look(out, s, d);
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
                           "a local cluster is already up, but %zu of its %zu nodes have ended",
                           s->len - up, s->len);
    return sherd__fail(d, SHERD_EINVAL, hint, "a local cluster of %zu node%s is already up", up,
                       up == 1 ? "" : "s");
}

int sherd_local_start(sherd_local **out, const sherd_local_options *opt, sherd_diag *d)
{
    sherd_local_options o;
    state s;
    if (out) *out = NULL;
    int err = sherd__options_read(&o, sizeof o, opt, "sherd_local_options", d);
    if (!err && (o.nodes == 0 || o.nodes > NODES_MAX))
        err = sherd__fail(d, SHERD_EINVAL, NULL, "%u local nodes: expected 1 to %u", o.nodes,
                          NODES_MAX);
    if (err) return err;
    err = open_state(&s, o.folder, true, d);
    if (!err && living(&s)) err = up_already(&s, d);
    if (!err && !s.exists) err = check_unused(&s, d);
    if (!err) {
        remove_files(&s); /* of a cluster whose nodes have ended */
        err = start_nodes(&s, &o, out, d);
    }
    close_state(&s);
    return err;
}

int sherd_local_status(sherd_local **out, const char *folder, sherd_diag *d)
{
    state s;
    *out = NULL;
    int err = open_state(&s, folder, false, d);
    if (!err && s.len == 0) err = no_cluster(d);
    if (!err) {
        read_lines(&s);
        err = look(out, &s, d);
    }
    close_state(&s);
    return err;
}

/* ---- stop ------------------------------------------------------------------------------------ */

/* Returns a pidfd of exactly the process in the state, or -1 if it has ended. */
static int handle_of(const member *m)
{
    int fd = (int)syscall(SYS_pidfd_open, m->pid, 0);
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
        (void)syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
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

static int end_nodes(state *s, sherd_diag *d)
{
    char path[PATH_MAX];
    path_of(s, NODES, path);
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
    return SHERD_OK;
}

int sherd_local_stop(const char *folder, uint32_t *ended, sherd_diag *d)
{
    state s;
    int err = open_state(&s, folder, false, d);
    if (!err && s.len == 0) err = no_cluster(d);
    size_t up = err ? 0 : living(&s);
    if (!err) err = end_nodes(&s, d);
    if (!err && ended) *ended = (uint32_t)up;
    close_state(&s);
    return err;
}
