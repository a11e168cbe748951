from ._cluster import Cluster
from ._options import schemes
from ._plan import plan
