"""What clusters on the workers of Dask and Ray have in common."""

from __future__ import annotations

import re
from typing import Any, Callable, Optional, Union

from ._cluster import Cluster
from ._node import Key, Node

# How the workers are divided into domains: all are one, each is one, or a function of its name.
Domains = Union[None, str, Callable[[str], str]]

_started: dict[str, Node] = {}  # in a worker, by the fingerprint of the coordinator


def check_domains(domains: Domains) -> None:
    """Raises ValueError if `domains` is none of its choices."""
    if domains is not None and domains != "worker" and not callable(domains):
        raise ValueError(f"domains is {domains!r}, and not None, 'worker' or a function")


def domain_of(domains: Domains, engine: str, worker: str) -> str:
    """Returns the domain of a worker."""
    if domains is None:
        return engine
    if callable(domains):
        return domains(worker)
    return re.sub(r"\W+", "-", worker)


def start(fingerprint: str, host: str, name: str, domain: str, **options: Any) -> str:
    """Starts a node in this process, a worker, for one coordinator; returns its line.

    Its key is fresh and stays in the memory of this process.
    """
    address = f"[{host}]:0" if ":" in host else f"{host}:0"
    node = Node(allow=[fingerprint], listen=address, name=name, domain=domain, **options)
    _started[f"{fingerprint} {name}"] = node
    return node.line


def stop(fingerprint: str) -> int:
    """Ends the nodes of a coordinator in this process; returns their number."""
    mine = [name for name in _started if name.startswith(fingerprint)]
    for name in mine:
        _started.pop(name).end()
    return len(mine)


class EngineCluster(Cluster):
    """A cluster whose nodes were started on the workers of an engine, and end with it."""

    _stop: Optional[Callable[[], object]] = None

    def close(self) -> None:
        """Closes the cluster, and ends the nodes on the workers. A second call does nothing."""
        try:
            super().close()
        finally:
            stop_nodes, self._stop = self._stop, None
            if stop_nodes is not None and not self._worker.foreign:
                stop_nodes()


def connect(
    lines: list[str], key: Key, stop_nodes: Callable[[], object], options: dict[str, Any]
) -> EngineCluster:
    """Opens the cluster of nodes that were started; ends them if that fails."""
    try:
        opened = EngineCluster(lines, key=key, **options)
    except BaseException:
        stop_nodes()
        raise
    opened._stop = stop_nodes
    return opened
