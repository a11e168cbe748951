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

sys.dont_write_bytecode = True
sys.path.insert(0, "examples")
from sherd_cffi import Sherd, preprocess  # noqa: E402

include, library, command = sys.argv[1:4]
failed = 0


def report(name, problem):
    global failed
    print(("not ok - " if problem else "ok - ") + name)
    for line in str(problem).splitlines() if problem else []:
        print("# " + line)
    failed |= bool(problem)


def struct_of_its_size(t):
    """A struct that a caller allocates begins with its size; the others never change, or the library makes them."""
    fixed = ("diag field hooks multiplier multiplier_ops progress rates rows view windows "
             "audit_control audit_figure audit_finding audit_picture audit_scope device device_rate epoch scheme_info train_pass "
             "train_update").split()
    name, member = ffi.typeof(t).fields[0]
    return (name, member.type.cname) == ("size", "size_t") or t in ["sherd_" + x for x in fixed]


for header in [] if sys.argv[4:] else sorted(glob.glob(os.path.join(include, "sherd", "*.h"))):
    try:
        cffi.FFI().cdef(preprocess(header, include))
        problem = None
    except Exception as e:  # whatever cffi, its parser or the preprocessor object to
        problem = e
    report(f"cffi parses {os.path.basename(header)}", problem)


def unload():
    """Unloads the library while the threads of a cluster run in it, as Python does at its end."""
    other = Sherd(include, library)
    cluster = other.ffi.new("sherd_cluster **")
    other.call("sherd_cluster_open", cluster, other.new("sherd_cluster_options", local_nodes=1, program=command))
    other.ffi.dlclose(other.lib)
    time.sleep(0.5)
    os._exit(0)


if sys.argv[4:] == ["unload"]:
    unload()

sherd = Sherd(include, library)
ffi, lib = sherd.ffi, sherd.lib

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


report("structs begin with their size", "\n".join(t for t in structs if not struct_of_its_size(t)))


def product():
    """A private product of integers from arrays of numpy, on local nodes."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(-99, 100, (40, 30)), rng.integers(-99, 100, (20, 30)).T
    c = np.zeros((40, 20))
    cluster, node = ffi.new("sherd_cluster **"), sherd.new("sherd_node_info")
    sherd.call("sherd_cluster_open", cluster, sherd.new("sherd_cluster_options", local_nodes=5, program=command))
    try:
        sherd.call("sherd_cluster_node_at", cluster[0], 4, node)
        if node.pid <= 0 or sherd.text(node.name) != "node-5":
            raise RuntimeError(f"node 5 is {sherd.text(node.name)}, process {node.pid}")
        sherd.call("sherd_multiply", cluster[0], sherd.view(a), sherd.view(b), ffi.cast("double *", c.ctypes.data), 20,
                   sherd.new("sherd_product_options", scheme=lib.SHERD_SHARE), sherd.new("sherd_report"))
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



def refused(dtype):
    """Returns what is wrong with the refusal of an array of another dtype."""
    try:
        sherd.view(np.zeros((2, 2), dtype))
    except TypeError as e:
        return None if np.dtype(dtype).str in str(e) and ".astype('<f8')" in str(e) else f"{dtype}: {e}"
    return f"{dtype}: accepted"


report("arrays of other dtypes are refused by name",
       "\n".join(filter(None, map(refused, ["f2", "?", "u8", ">f8", "c16"]))))

report("the library can be unloaded while a cluster is open",
       subprocess.run([sys.executable, __file__, include, library, command, "unload"]).returncode)
sys.exit(failed)
