"""
A private product of numpy's arrays with a certificate, which is verified afterwards, from Python:

    python3 product.py [COMMAND [CERTIFICATE]]

COMMAND: the `sherd` command that local nodes run; otherwise the one that was installed with the
library. The nodes see random numbers only (scheme share). The verifier needs the certificate's file
and the arrays: it computes the product again.
"""
import sys

import numpy as np

from sherd_cffi import Error, Sherd

sherd = Sherd()
ffi, lib = sherd.ffi, sherd.lib


def multiply(a, b, program, path):
    """Multiplies over five local nodes, and writes the certificate of the result to `path`."""
    c = np.empty((a.shape[0], b.shape[1]))
    cluster, certificate = ffi.new("sherd_cluster **"), ffi.new("sherd_certificate **")
    where = sherd.new("sherd_cluster_options", local_nodes=5, program=program)
    how = sherd.new("sherd_product_options", scheme=lib.SHERD_SHARE, bits=20)
    report = sherd.new("sherd_report")
    sherd.call("sherd_cluster_open", cluster, where)
    try:
        sherd.call("sherd_certificate_new", certificate, None)  # or the file of your key
        sherd.call("sherd_multiply", cluster[0], sherd.view(a), sherd.view(b),
                   ffi.cast("double *", c.ctypes.data), c.shape[1], how, report)
        sherd.call("sherd_certificate_make", certificate[0],
                   sherd.new("sherd_certified", cluster=cluster[0], a=sherd.view(a), b=sherd.view(b),
                             result=sherd.view(c), options=how, report=report))
        sherd.call("sherd_certificate_write", certificate[0], path)
    finally:
        lib.sherd_report_fini(report)
        lib.sherd_certificate_free(certificate[0])
        lib.sherd_cluster_close(cluster[0])
    return c


def verify(a, b, c, path):
    """Verifies the arrays by the certificate alone; returns what it says, by the names of its fields."""
    certificate = ffi.new("sherd_certificate **")
    info, found = sherd.new("sherd_certificate_info"), sherd.new("sherd_check")
    sherd.call("sherd_certificate_load", certificate, path)
    try:
        sherd.call("sherd_certificate_get", certificate[0], info)
        views = ffi.new("sherd_view[]", [sherd.view(x) for x in (a, b, c)])
        sherd.call("sherd_certificate_verify", certificate[0], views, 3, None, found)
    finally:
        lib.sherd_certificate_free(certificate[0])
    return info, found


program = sys.argv[1] if len(sys.argv) > 1 else None
path = sys.argv[2] if len(sys.argv) > 2 else "C.json"
random = np.random.default_rng()
a, b = random.uniform(-1, 1, (50, 70)), random.uniform(-1, 1, (30, 70)).T  # views of any strides
c = multiply(a, b, program, path)
info, found = verify(a, b, c, path)
print(f"{sherd.text(info.operation)} by {info.nodes} nodes ({sherd.text(info.scheme)}): {found.entries} entries, "
      f"{'equal bit for bit' if found.judged == lib.SHERD_JUDGED_BITS else 'equal within the bound'}; "
      f"largest difference from numpy's product: {abs(c - a @ b).max():.1e}")

c[0, 7] += 1e-6  # a result that was changed afterwards is not the certified one
try:
    verify(a, b, c, path)
except Error as e:
    if e.code != lib.SHERD_EDIFFERS:
        raise
    print("changed:", e)
else:
    sys.exit("the changed result was not found")
