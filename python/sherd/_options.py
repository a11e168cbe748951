"""Options of products, as keyword arguments with the names of `sherd multiply`."""

from __future__ import annotations

import dataclasses
import difflib
import numbers
import os
from typing import Any, Callable, Optional, TypedDict, Union

from ._errors import InvalidArgument, in_python
from ._library import ffi, hold, lib, new, path_of, wrong_type
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
        scheme = read(Scheme, info)
        found.append(dataclasses.replace(scheme, about=in_python(scheme.about or "")))


def _scheme(name: str) -> int:
    names = {str(s.name): s.scheme for s in schemes()}
    if name not in names:
        raise InvalidArgument(f"there is no scheme {name!r}", "the schemes are " + ", ".join(names))
    return names[name]


def milliseconds(seconds: Optional[float], name: str = "timeout") -> Optional[int]:
    """Returns a time in the unit of the library; None: no limit."""
    if seconds is None:
        return None
    if not isinstance(seconds, numbers.Real) or isinstance(seconds, bool):
        raise wrong_type(name, seconds, "a number of seconds")
    if not 0 < seconds < 2**32 / 1000:
        raise InvalidArgument(
            f"{name} is {seconds!r}, and not a positive number of seconds", "None: no limit"
        )
    return max(1, round(seconds * 1000))


def seed_of(seed: Any) -> Any:
    """Returns a seed of 32 bytes as the library takes it; None: it draws one."""
    if seed is None:
        return ffi.NULL
    if not isinstance(seed, (bytes, bytearray)):
        raise wrong_type("seed", seed, "32 bytes: secrets.token_bytes(32) makes them")
    if len(seed) != 32:
        raise InvalidArgument(
            f"seed has {len(seed)} bytes, and not 32", "secrets.token_bytes(32) makes one"
        )
    return ffi.new("uint8_t[32]", bytes(seed))


def refuse_number_as_text(nodes: Any) -> None:
    """Raises InvalidArgument for a number of nodes that is a text: a text names a node file."""
    if isinstance(nodes, str) and nodes.isdecimal() and not os.path.exists(nodes):
        raise InvalidArgument(
            f"nodes is {nodes!r}, and there is no node file of that name",
            f"{nodes} without quotes is a number of nodes",
        )


# Options of the command that have another form here.
_OTHERWISE = {"mode": "exact=True computes in fixed point, exact=False in float64"}


def refuse_unknown(
    given: Any,
    known: Any,
    what: str,
    is_key: Callable[[str, Any], bool] = lambda name, value: False,
) -> None:
    """Raises a TypeError that names the nearest option, as Python does for keyword arguments.

    is_key: whether a recipe has a key of that name, which takes that value.
    """
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            if is_key(name, given[name]):
                hint = f": it is a key of the recipe, settings={{{name!r}: {given[name]!r}}}"
            elif name in _OTHERWISE:
                hint = f": {_OTHERWISE[name]}"
            raise TypeError(f"{what} has no option {name!r}{hint}")


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
    scheme, masks = (given.pop(x, None) for x in ("scheme", "masks"))
    secret = seed_of(given.pop("seed", None))
    timeout = milliseconds(given.pop("timeout", None))
    if given.get("bits") and "exact" not in given:
        given["exact"] = True
    for name, values in _CHOICES.items():
        if name in given and given[name] not in values:
            raise InvalidArgument(f"{name} is {given[name]!r}", "one of " + ", ".join(values))
        given[name] = values[given.get(name, "auto")]
    made = new(
        "sherd_product_options",
        **given,
        **members,
        timeout_ms=timeout,
        scheme=None if scheme is None else _scheme(scheme),
        masks=None if masks is None else path_of(masks, "masks"),
    )
    hold(made, secret)
    made.seed = secret
    return made
