"""
Matrix products and trainings on nodes that are not trusted.

::

    import numpy as np, sherd

    X, W = np.random.rand(300, 200), np.random.rand(200, 100)
    with sherd.Cluster(7, scheme="share", spare=1) as c:
        print(c.plan(X, W))               # what each scheme costs, and who learns what
        Y = c.multiply(X, W, check=True)  # an ndarray
        A = c.keep(X)                     # stays at the nodes as shares
        Y = A @ W                         # also ndarray @ A, A.T @ D
        print(c.report)                   # bytes, who was slow, who lied, strength of the check

`Cluster("nodes.txt", key="me.key")` uses nodes that run elsewhere.

Products: `Cluster` (multiply, submit, keep, apply, plan), `plan`, `schemes`, `ProductOptions`.
Trainings: `train`, `Model`, `Recipe`, `recipes`, `load_data`, `TrainingOptions`.
Certificates: `verify`, `Certificate`. Metadata: the module `sherd.metadata`.
Audits: `audit`, `simulate_audit`.
Nodes, keys and masks: `Node`, `Key`, `keygen`, `fingerprint`, `prepare`, `masks`.
Other libraries: the modules `sherd.sklearn`, `sherd.dask` and `sherd.ray`, which import them.
Errors: every error is a `sherd.Error` with message, hint and exit_code; its class says what failed.

It calls the C library libsherd. docs/THREATS.md of that library says who learns what under each
scheme. The default scheme, "permute", is not private; "share", "share1" and "blind" are.
"""

from . import metadata
from ._audit import Audit, Picture, audit, simulate_audit
from ._certificate import Certificate, verify
from ._cluster import Cluster
from ._errors import *  # noqa: F403
from ._errors import __all__ as _error_names
from ._files import fingerprint, keygen, masks, prepare
from ._kept import Kept, KeptTransposed
from ._library import LibraryError, library
from ._node import Key, Node
from ._options import ProductOptions, ProductSettings, schemes
from ._plan import Choice, Plan, plan
from ._record import Record
from ._records import (
    VERSION,
    Check,
    DataInfo,
    Distance,
    Exposure,
    Finding,
    Forecast,
    Gradients,
    NodeInfo,
    NodeReport,
    Progress,
    ReportNode,
    Scheme,
    TrainingReport,
    Update,
)
from ._report import Report
from ._training import Data, Epoch, Model, Recipe, TrainingOptions, load_data, recipes, train
from ._worker import Future

__version__ = VERSION

__all__ = [
    "Audit",
    "Certificate",
    "Check",
    "Choice",
    "Cluster",
    "Data",
    "DataInfo",
    "Distance",
    "Epoch",
    "Exposure",
    "Finding",
    "Forecast",
    "Future",
    "Gradients",
    "Kept",
    "KeptTransposed",
    "Key",
    "LibraryError",
    "Model",
    "Node",
    "NodeInfo",
    "NodeReport",
    "Picture",
    "Plan",
    "ProductOptions",
    "ProductSettings",
    "Progress",
    "Recipe",
    "Record",
    "Report",
    "ReportNode",
    "Scheme",
    "TrainingOptions",
    "TrainingReport",
    "Update",
    "audit",
    "fingerprint",
    "keygen",
    "library",
    "load_data",
    "masks",
    "metadata",
    "plan",
    "prepare",
    "recipes",
    "schemes",
    "simulate_audit",
    "train",
    "verify",
    *_error_names,
]

# Classes are shown by the names by which they are used: sherd.WrongShape.
for _name in __all__:
    if getattr(globals()[_name], "__module__", "").startswith("sherd."):
        globals()[_name].__module__ = "sherd"
