"""Certificates: signed accounts of operations, which anyone who has the matrices can verify."""

from __future__ import annotations

from typing import Any, Optional

from ._arrays import matrix, view
from ._errors import call
from ._handle import Handle, made
from ._library import ffi, lib, new, path_of, text_of
from ._options import PathLike
from ._reading import read
from ._records import CertificateInfo, CertificateMatrix, CertificateNode, Check
from ._worker import ProgressOption, Worker


class Certificate(Handle):
    """A certificate that was read from a file. Its signature is verified with the key that it
    contains.

    Attributes:
        info: what it states: operation, scheme, arithmetic, check, signer
        matrices: the inputs, then the result: dtype, shape and digest
        nodes: the nodes that it lists
        warnings: what limits it, as sentences

    Raises CannotOpen, Malformed, VersionMismatch, AuthenticationFailed (the signature does not
    match).
    """

    def __init__(self, path: PathLike) -> None:
        out = made("sherd_certificate")
        call("sherd_certificate_load", out, path_of(path))
        super().__init__(out[0], lib.sherd_certificate_free)
        info = new("sherd_certificate_info")
        call("sherd_certificate_get", self._pointer, info)
        self.info = read(CertificateInfo, info)
        self.matrices = self._list(
            CertificateMatrix, "sherd_certificate_matrix", self.info.inputs + 1
        )
        self.nodes = self._list(CertificateNode, "sherd_certificate_node", self.info.nodes_listed)
        self.warnings = [
            text_of(lib.sherd_certificate_warning_at(self._pointer, i))
            for i in range(self.info.warnings)
        ]

    def _list(self, cls: Any, struct: str, count: int) -> list[Any]:
        found = []
        for i in range(count):
            item = new(struct)
            call(struct + "_at", self._pointer, i, item)
            found.append(read(cls, item))
        return found

    def __repr__(self) -> str:
        i = self.info
        return f"<Certificate: {i.operation} by {i.nodes} nodes, {i.scheme}, signed by {i.signer}>"

    def verify(
        self, *matrices: Any, signer: Optional[str] = None, progress: ProgressOption = None
    ) -> Check:
        """Verifies that the matrices are the certified ones, and computes the operation again.

        matrices: the inputs, then the result, with the dtypes that they had.
        signer: fingerprint of the key that must have signed ("sha256:...", `fingerprint`); None:
            any key.

        Returns the comparison. Raises AuthenticationFailed (another key), InvalidArgument (another
        number of matrices), WrongShape, Malformed (an input is not the certified one), Differs (the
        result is not, or is wrong).
        """
        arrays = []
        for i, x in enumerate(matrices):
            right = i == 1 and len(matrices) == 3 and self.info.operation == "product"
            array, ndim = matrix(
                x, "the result" if i == len(matrices) - 1 else f"input {i + 1}", column=right
            )
            certified = self.matrices[i] if i < len(self.matrices) else None
            if ndim == 1 and certified and array.shape != (certified.rows, certified.cols):
                array = array.T
            arrays.append(array)

        def work(worker: Worker) -> Check:
            views = ffi.new("sherd_view[]", [view(x) for x in arrays])
            options = new("sherd_verify_options", signer=signer)
            worker.hooks(options.hooks)
            found = new("sherd_check")
            call("sherd_certificate_verify", self._pointer, views, len(arrays), options, found)
            return read(Check, found)

        return self._run("verify", work, progress)


def verify(
    certificate: PathLike,
    *matrices: Any,
    signer: Optional[str] = None,
    progress: ProgressOption = None,
) -> Check:
    """Verifies inputs and result by the file of a certificate; see `Certificate.verify`.

    ::

        r = c.multiply(X, W, certificate="C.json", key="me.key")
        sherd.verify("C.json", X, W, r)
    """
    return Certificate(certificate).verify(*matrices, signer=signer, progress=progress)
