"""
A cluster on the workers of a running Dask cluster.

::

    client = dask.distributed.Client("scheduler:8786")
    with sherd.dask.cluster(client, scheme="plain") as c:
        Y = c.multiply(X, W)
"""

from __future__ import annotations

from typing import Any, Optional
from urllib.parse import urlsplit

from ._engine import Domains, EngineCluster, check_domains, connect, domain_of, start, stop
from ._node import Key

__all__ = ["cluster"]


def cluster(
    client: Any,
    *,
    workers: Optional[list[str]] = None,
    domains: Domains = None,
    threads: Optional[int] = None,
    memory: Optional[int] = None,
    **options: Any,
) -> EngineCluster:
    """Starts a node in each worker of a Dask cluster, and opens a cluster of these nodes.

    client: a `dask.distributed.Client`. sherd must be installed on the workers, in this version,
        and this machine must reach them.
    workers: addresses of the workers to use; None: all.
    domains: None: all workers are one domain, since one operator runs them: "share" is refused
        then (TooFewNodes), because it would hide nothing, while "blind", "plain", "permute" and
        training by gradients work. "worker": each worker is a domain of its own. A function:
        returns the domain of a worker's address.
    threads, memory: of each node, as for `Node`.
    options: those of `Cluster`.

    The nodes end with the cluster, and with their workers. Keys are made for this cluster and stay
    in the memory of their processes; Dask carries fingerprints and addresses only. What the nodes
    receive goes through connections of their own, and not through Dask's.

    Raises as `Cluster`; ValueError: there are no workers.
    """
    check_domains(domains)
    addresses = list(workers or client.scheduler_info(n_workers=-1)["workers"])
    if not addresses:
        raise ValueError("the Dask cluster has no workers")
    key = Key()
    fingerprint = key.fingerprint

    def stop_nodes() -> None:
        if client.status == "running":
            client.run(stop, fingerprint, workers=addresses, on_error="ignore")

    lines = []
    try:
        for i, address in enumerate(addresses):
            host = urlsplit(address).hostname or "127.0.0.1"
            found = client.run(
                start,
                fingerprint,
                host,
                f"dask-{i + 1}",
                domain_of(domains, "dask", address),
                threads=threads,
                memory=memory,
                workers=[address],
            )
            lines.append(found[address])
    except BaseException:
        stop_nodes()
        raise
    return connect(lines, key, stop_nodes, options)
