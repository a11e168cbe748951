"""
A cluster on the nodes of a running Ray cluster.

::

    ray.init("auto")
    with sherd.ray.cluster(scheme="plain") as c:
        Y = c.multiply(X, W)
"""

from __future__ import annotations

from typing import Any, Optional

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ._engine import Domains, EngineCluster, check_domains, connect, domain_of, start
from ._node import Key

__all__ = ["cluster"]


class _Actor:
    """A process of Ray in which one node runs."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._line = start(*arguments, **options)

    def line(self) -> str:
        return self._line


def cluster(
    *,
    nodes_each: int = 1,
    domains: Domains = None,
    threads: Optional[int] = None,
    memory: Optional[int] = None,
    num_cpus: float = 0,
    **options: Any,
) -> EngineCluster:
    """Starts an actor with a node on each node of a Ray cluster, and opens a cluster of them.

    Ray must be initialised. sherd must be installed on its nodes, in this version, and this machine
    must reach them.

    nodes_each: nodes to start on each node of Ray.
    domains: None: all are one domain, since one operator runs them: "share" is refused then
        (TooFewNodes), because it would hide nothing, while "blind", "plain", "permute" and training
        by gradients work. "worker": each is a domain of its own. A function: returns the domain of
        the id of a Ray node.
    threads, memory: of each node, as for `Node`. num_cpus: what Ray reserves for each.
    options: those of `Cluster`.

    The nodes end with the cluster, and with Ray. Keys are made for this cluster and stay in the
    memory of their processes; Ray carries fingerprints and addresses only. What the nodes receive
    goes through connections of their own, and not through Ray's.

    Raises as `Cluster`.
    """
    check_domains(domains)
    engine: Any = ray  # whose types do not know all that it takes
    key = Key()
    actors: list[Any] = []

    def stop_nodes() -> None:
        if ray.is_initialized():
            for actor in actors:
                ray.kill(actor)

    try:
        for there in (n for n in engine.nodes() if n["Alive"]):
            where = NodeAffinitySchedulingStrategy(there["NodeID"], soft=False)
            for i in range(nodes_each):
                worker = there["NodeID"] if nodes_each == 1 else f"{there['NodeID']}-{i + 1}"
                remote = engine.remote(num_cpus=num_cpus, scheduling_strategy=where)(_Actor)
                actors.append(
                    remote.remote(
                        key.fingerprint,
                        there["NodeManagerAddress"],
                        f"ray-{len(actors) + 1}",
                        domain_of(domains, "ray", worker),
                        threads=threads,
                        memory=memory,
                    )
                )
        lines = ray.get([actor.line.remote() for actor in actors])
    except BaseException:
        stop_nodes()
        raise
    return connect(lines, key, stop_nodes, options)
