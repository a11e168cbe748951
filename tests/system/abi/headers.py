"""
Reads the public headers as a program of Python would, through cffi, and holds them to the library.

    headers.py INCLUDE LIBRARY COMMAND [unload]

INCLUDE: the folder that contains sherd/; COMMAND: what local nodes run. Prints TAP.
"""
import glob
import os
import subprocess
import sys
import tempfile
import time

import cffi
import numpy as np

include, library, command = sys.argv[1:4]
failed = 0


def report(name, problem):
    global failed
    print(("not ok - " if problem else "ok - ") + name)
    for line in str(problem).splitlines() if problem else []:
        print("# " + line)
    failed |= bool(problem)


def preprocess(header, empty):
    """Expands a header without those of the C library, whose types cffi knows."""
    run = subprocess.run(["cc", "-std=c11", "-E", "-P", "-nostdinc", "-D__attribute__(x)=", "-I", empty, "-I", include,
                          header], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return run.stdout


def declare(text):
    ffi = cffi.FFI()
    ffi.cdef(text)
    return ffi


with tempfile.TemporaryDirectory() as empty:
    for name in ("stdbool.h", "stddef.h", "stdint.h"):
        open(os.path.join(empty, name), "w").close()
    for header in [] if sys.argv[4:] else sorted(glob.glob(os.path.join(include, "sherd", "*.h"))):
        try:
            declare(preprocess(header, empty))
            problem = None
        except Exception as e:  # whatever cffi, its parser or the preprocessor object to
            problem = e
        report(f"cffi parses {os.path.basename(header)}", problem)
    text = preprocess(os.path.join(include, "sherd", "sherd.h"), empty)

def unload():
    """Unloads the library while the threads of a cluster run in it, as Python does at its end."""
    other = cffi.FFI()
    other.cdef(text)
    loaded = other.dlopen(library)
    program = other.new("char[]", command.encode())
    cluster = other.new("sherd_cluster **")
    opt = other.new("sherd_cluster_options *", {"size": other.sizeof("sherd_cluster_options"), "local_nodes": 1,
                                                "program": program})
    if loaded.sherd_cluster_open(cluster, opt, other.NULL):
        os._exit(1)
    other.dlclose(loaded)
    time.sleep(0.5)
    os._exit(0)
if sys.argv[4:] == ["unload"]:
    unload()

ffi = declare(text)
lib = ffi.dlopen(library)

structs = [t for t in ffi.list_types()[0] if ffi.typeof(t).kind == "struct" and ffi.typeof(t).fields]
with tempfile.TemporaryDirectory() as work:
    c = os.path.join(work, "sizes.c")
    with open(c, "w") as f:
        f.write("#include <stdio.h>\n#include <sherd/sherd.h>\nint main(void) {\n")
        for t in structs:
            for m, _ in ffi.typeof(t).fields:
                f.write(f'printf("{t}.{m} %zu\\n", offsetof({t}, {m}));\n')
            f.write(f'printf("{t} %zu\\n", sizeof({t}));\n')
        f.write("return 0; }\n")
    subprocess.run(["cc", "-std=c11", "-I", include, c, "-o", os.path.join(work, "sizes")], check=True)
    theirs = dict(x.split() for x in subprocess.check_output([os.path.join(work, "sizes")], text=True).splitlines())
ours = {}
for t in structs:
    ours[t] = ffi.sizeof(t)
    ours.update({f"{t}.{m}": ffi.offsetof(t, m) for m, _ in ffi.typeof(t).fields})
report("members are where the C compiler puts them",
       "\n".join(f"{x}: {ours[x]}, in C {theirs[x]}" for x in ours if ours[x] != int(theirs[x])) if structs else "no structs")


def product():
    """A private product of integers from arrays of numpy, on local nodes."""
    d = ffi.new("sherd_diag *")

    def check(err):
        if err:
            raise RuntimeError(f"{err}: {ffi.string(d.message).decode()}")

    rng = np.random.default_rng(5)
    a, b = rng.integers(-99, 100, (40, 30)), rng.integers(-99, 100, (30, 20))
    c = np.zeros((40, 20))
    program = ffi.new("char[]", command.encode())
    cluster, report_ = ffi.new("sherd_cluster **"), ffi.new("sherd_report *")
    opt = ffi.new("sherd_cluster_options *", {"size": ffi.sizeof("sherd_cluster_options"), "local_nodes": 5,
                                              "program": program})
    check(lib.sherd_cluster_open(cluster, opt, d))
    try:
        node = ffi.new("sherd_node_info *", {"size": ffi.sizeof("sherd_node_info")})
        check(lib.sherd_cluster_node_at(cluster[0], 4, node, d))
        if node.pid <= 0 or ffi.string(node.name) != b"node-5":
            raise RuntimeError(f"node 5 is {ffi.string(node.name)}, process {node.pid}")
        report_.size = ffi.sizeof("sherd_report")
        work = ffi.new("sherd_product_options *", {"size": ffi.sizeof("sherd_product_options"),
                                                   "scheme": lib.SHERD_SHARE})
        views = [lib.sherd_view_c(ffi.from_buffer(x), lib.SHERD_I64, *x.shape) for x in (a, b)]
        check(lib.sherd_multiply(cluster[0], views[0], views[1], ffi.cast("double *", ffi.from_buffer(c)), c.shape[1],
                                 work, report_, d))
    finally:
        lib.sherd_cluster_close(cluster[0])
    if not np.array_equal(c, a @ b):
        raise RuntimeError("the product differs from numpy's")


try:
    product()
    problem = None
except Exception as e:
    problem = e
report("a private product of numpy's arrays equals numpy's", problem)

report("the library can be unloaded while a cluster is open",
       subprocess.run([sys.executable, __file__, include, library, command, "unload"]).returncode)
sys.exit(failed)
