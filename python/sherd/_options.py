"""Options of products, as keyword arguments with the names of `sherd multiply`."""

from __future__ import annotations

import difflib
import os
from typing import Any, Optional, TypedDict, Union

from ._errors import InvalidArgument
from ._library import ffi, hold, lib, new, path_of
from ._reading import read
from ._records import Scheme

PathLike = Union[str, os.PathLike[str]]


class ProductSettings(TypedDict, total=False):
    """How products are computed.

    Every option has a default. One that the scheme does not read has no effect.

    scheme: "permute" (default), "plain", "share", "share1" or "blind"; `schemes()` describes them.
    exact: fixed point, with the same bits everywhere; otherwise float64. Private schemes are always
        exact.
    bits: exact: width that floats are rounded to, 2 to 26; default 17. It implies exact.
    bits_b: private schemes: width of B if it differs from that of A.
    colluding: share, share1: domains that may combine what they see without learning anything;
        default 1.
    spare: share, share1: domains that may be slow, dead or lying without repeated work; default 0.
    masks: blind: file of `prepare` for this B.
    group: permute: columns that share one permutation; default: all columns of a node.
    balanced: permute: assign equal counts of columns.
    shuffle_rows: permute: send A's rows in another order in every group.
    code: share: how operands are coded that are not kept: "auto" (default), "lagrange", or "inner",
        under which nodes compute less, and none may be missing (spare 0).
    exposure_max: largest fraction of an operand that a domain may be given; default: twice the
        largest planned one.
    encoding: permute, plain: "auto" (default), "dense" or "csr".
    memory: working memory of this process in bytes, besides operands and result; default 192 MiB.
    strict: a wrong answer fails the call instead of causing a warning.
    """

    scheme: str
    exact: bool
    bits: int
    bits_b: int
    colluding: int
    spare: int
    masks: PathLike
    code: str
    group: int
    balanced: bool
    shuffle_rows: bool
    exposure_max: float
    encoding: str
    memory: int
    strict: bool


class ProductOptions(ProductSettings, total=False):
    """How one product is computed: ProductSettings, and:

    seed: 32 bytes from which permutations derive, a secret; default: a fresh seed.
    timeout: time limit of the call in seconds; default: none.
    """

    seed: bytes
    timeout: float


# Options whose values have names, by the numbers of the library.
_CHOICES = {
    "encoding": {
        "auto": lib.SHERD_ENCODING_AUTO,
        "dense": lib.SHERD_ENCODING_DENSE,
        "csr": lib.SHERD_ENCODING_CSR,
    },
    "code": {
        "auto": lib.SHERD_CODE_AUTO,
        "lagrange": lib.SHERD_CODE_LAGRANGE,
        "inner": lib.SHERD_CODE_INNER,
    },
}


def schemes() -> list[Scheme]:
    """Returns the descriptions of all schemes: what each hides, and from whom."""
    found: list[Scheme] = []
    while True:
        info = lib.sherd_scheme_at(len(found))
        if not info:
            return found
        found.append(read(Scheme, info))


def _scheme(name: str) -> int:
    names = {str(s.name): s.scheme for s in schemes()}
    if name not in names:
        raise InvalidArgument(f"there is no scheme {name!r}", "the schemes are " + ", ".join(names))
    return names[name]


def milliseconds(seconds: Optional[float], name: str = "timeout") -> Optional[int]:
    """Returns a time in the unit of the library; None: no limit."""
    if seconds is None:
        return None
    if not 0 < seconds < 2**32 / 1000:
        raise InvalidArgument(
            f"{name} is {seconds!r}, and not a positive number of seconds", "None: no limit"
        )
    return max(1, round(seconds * 1000))


def refuse_unknown(given: Any, known: Any, what: str) -> None:
    """Raises a TypeError that names the nearest option, as Python does for keyword arguments."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise TypeError(
                f"{what} has no option {name!r}" + (f": did you mean {near[0]!r}?" if near else "")
            )


def refuse_without_effect(given: ProductOptions, name: str) -> None:
    """Raises InvalidArgument for an option that the scheme of this name does not read."""
    scheme = _scheme(name)
    info = lib.sherd_scheme_get(scheme)
    if info.takes & lib.SHERD_TAKES_COLLUDING:
        return
    for option in ("colluding", "spare", "code"):
        if option in given:
            private = "" if lib.sherd_scheme_private(scheme) else ", which is not private"
            raise InvalidArgument(
                f'{option} has no effect under scheme "{name}"{private}',
                'leave it out, or use scheme="share"',
            )


def product_options(options: ProductOptions, **members: Any) -> Any:
    """Makes a sherd_product_options."""
    refuse_unknown(options, ProductOptions.__annotations__, "a product")
    given: dict[str, Any] = dict(options)
    scheme, seed, masks = (given.pop(x, None) for x in ("scheme", "seed", "masks"))
    timeout = milliseconds(given.pop("timeout", None))
    if given.get("bits") and "exact" not in given:
        given["exact"] = True
    for name, values in _CHOICES.items():
        if name in given and given[name] not in values:
            raise InvalidArgument(f"{name} is {given[name]!r}", "one of " + ", ".join(values))
        given[name] = values[given.get(name, "auto")]
    if seed is not None and (not isinstance(seed, bytes) or len(seed) != 32):
        raise InvalidArgument("seed is not 32 bytes", "secrets.token_bytes(32) makes one")
    try:
        made = new(
            "sherd_product_options",
            **given,
            **members,
            timeout_ms=timeout,
            scheme=None if scheme is None else _scheme(scheme),
            masks=None if masks is None else path_of(masks),
        )
    except (OverflowError, TypeError) as e:
        raise InvalidArgument(f"an option has a wrong value: {e}") from None
    if seed is not None:
        secret = ffi.new("uint8_t[32]", seed)
        hold(made, secret)
        made.seed = secret
    return made
