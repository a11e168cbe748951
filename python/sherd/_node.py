"""Keys, and nodes in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

from ._errors import call
from ._handle import Handle, made
from ._library import hold, lib, new, path_of, text_of
from ._options import PathLike, milliseconds
from ._reading import read
from ._records import NodeReport
from ._worker import log_of_nodes


class Key(Handle):
    """A private key of a coordinator or a node.

    path: file of `keygen`; None: a fresh key in memory, which is in no file.

    Raises CannotOpen, BadKey.
    """

    def __init__(self, path: Optional[PathLike] = None) -> None:
        out = made("sherd_identity")
        if path is None:
            call("sherd_identity_new", out)
        else:
            call("sherd_identity_load", out, path_of(path))
        super().__init__(out[0], lib.sherd_identity_free)

    @property
    def fingerprint(self) -> str:
        """The fingerprint by which others know the key, "sha256:...". It is not secret."""
        return text_of(lib.sherd_identity_key(self._pointer))

    def save(self, path: PathLike) -> None:
        """Writes the key to a new file (mode 0600). Raises CannotOpen if the file exists."""
        call("sherd_identity_save", self._pointer, path_of(path))

    def __repr__(self) -> str:
        return f"<Key {self.fingerprint}>"


def identity(key: Union[Key, PathLike, None]) -> dict[str, Any]:
    """Returns the members `identity` and `key_file` of options of the library."""
    if isinstance(key, Key):
        return {"identity": key._pointer}
    return {"key_file": None if key is None else path_of(key, "key")}


def signer(key: Union[Key, PathLike, None]) -> dict[str, Any]:
    """Returns the member `key_file` of a certificate; a key in memory is that of the cluster."""
    return {} if key is None or isinstance(key, Key) else {"key_file": path_of(key, "key")}


class Node(Handle):
    """A node that serves coordinators in a thread of this process.

    ::

        with sherd.Node(allow=[fingerprint], domain="site-1") as node:
            print(node.line)  # for the coordinator's node file

    allow: fingerprints of the coordinators that may connect ("sha256:...").
    listen: "HOST:PORT"; port 0: the system chooses one.
    name, domain: name and domain (host, tenant or operator) in its line.
    key: a `Key`, or the path of one; None: a fresh key that ends with the node.
    memory: budget of blocks and results in bytes; default: half of this machine's memory.
    threads: threads of products in this process; default: unchanged.
    record: new folder for all bytes sent and received.

    Messages are log records of the logger "sherd". The node ends with the object or the process.

    Raises AddressInUse, NetworkFailed, BadKey, InvalidArgument, Malformed (allow).

    Who learns it: this process holds what coordinators send, in the form that their scheme gives
    it, until the node ends.
    """

    def __init__(
        self,
        *,
        allow: Sequence[str],
        listen: str = "127.0.0.1:0",
        name: Optional[str] = None,
        domain: Optional[str] = None,
        key: Union[Key, PathLike, None] = None,
        memory: Optional[int] = None,
        threads: Optional[int] = None,
        record: Optional[PathLike] = None,
    ) -> None:
        options = new(
            "sherd_node_options",
            allow="".join(f"* key={x} role=coordinator\n" for x in allow),
            listen=listen,
            name=name,
            domain=domain,
            memory=memory,
            threads=threads,
            quick_test=True,
            record_dir=None if record is None else path_of(record, "record"),
            **identity(key),
        )
        hold(options, key)
        options.hooks.log = log_of_nodes
        out = made("sherd_node")
        call("sherd_node_start", out, options)
        super().__init__(out[0], lib.sherd_node_free)
        self._finish.atexit = True

    @property
    def line(self) -> str:
        """Its line of a node file: address, key, name and domain."""
        return text_of(lib.sherd_node_line(self._pointer))

    @property
    def report(self) -> NodeReport:
        """Its counters since the start."""
        out = new("sherd_node_report")
        call("sherd_node_report_get", self._pointer, out)
        return read(NodeReport, out)

    def end(self, timeout: Optional[float] = None) -> None:
        """Shuts the node down after the product in progress; a second call does nothing.

        timeout: seconds to wait for that product; None: until it is finished. Raises Timeout.
        """
        call("sherd_node_end", self._pointer, milliseconds(timeout) or 0)

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def __repr__(self) -> str:
        return f"<Node: {self.line}>"
