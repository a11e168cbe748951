"""
Arrays: everything that numpy can see as a matrix of numbers becomes a view of the library, without
a copy where its memory can be read by strides.
"""

from __future__ import annotations

import os
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from ._errors import InvalidArgument, WrongShape
from ._library import ffi, lib, text_of, wrong_type

_HOST = (1, 3, 11, 13)  # DLPack's kDLCPU, kDLCUDAHost, kDLROCMHost, kDLCUDAManaged
_DTYPES = {
    np.dtype(name): int(lib.sherd_dtype_find(name.encode()))
    for name in ("<f8", "<f4", "|u1", "<u2", "<u4", "|i1", "<i2", "<i4", "<i8")
}
_VIEW = ffi.typeof("sherd_view *")
_DOUBLES = ffi.typeof("double[]")


def foreign(x: Any, name: str) -> Any:
    """Returns the array of an object of another library, whose memory must be the host's."""
    if x is None:
        raise wrong_type(name, x, "an array of numbers")
    if isinstance(x, (str, os.PathLike)):
        raise wrong_type(name, x, f"an array: numpy.load({os.fspath(x)!r}) reads one from a file")
    device = getattr(x, "__dlpack_device__", None)
    if device is not None and not isinstance(x, np.ndarray):
        if device()[0] not in _HOST:
            raise TypeError(
                f"{name} is in the memory of a device; sherd reads host memory: pass "
                f"{name}.cpu() or numpy.asarray of it"
            )
        if getattr(x, "requires_grad", False):
            x = x.detach()
        if not hasattr(x, "__array__"):
            return np.from_dlpack(x)
    if hasattr(x, "__cuda_array_interface__"):
        raise TypeError(
            f"{name} is in the memory of a GPU; sherd reads host memory: copy it there first"
        )
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, whose mask would be lost: pass {name}.filled(value)"
        )
    if hasattr(x, "toarray") and not hasattr(x, "__array__"):
        raise TypeError(
            f"{name} is a sparse matrix: pass {name}.toarray(); the scheme permute "
            "leaves zeros out by itself"
        )
    return np.asarray(x)


def numbers(x: Any, name: str) -> npt.NDArray[Any]:
    """Returns x as an array of a dtype that the library reads, copied only if it has another."""
    array = x if type(x) is np.ndarray else foreign(x, name)
    dtype = array.dtype
    if dtype not in _DTYPES:
        if dtype.kind == "b":
            array = array.view(np.uint8)
        elif dtype.kind == "f" and dtype.itemsize == 2:
            array = array.astype(np.float32)
        elif dtype.kind == "u" and dtype.itemsize == 8:
            fits = array.size == 0 or int(array.max()) < 2**63
            native = array.astype(np.uint64, copy=False)
            array = native.view(np.int64) if fits else native.astype(np.float64)
        elif dtype.newbyteorder("<") in _DTYPES:
            array = array.astype(dtype.newbyteorder("<"))
        else:
            raise TypeError(
                f"{name} has dtype {dtype}, which is not a real number of at most 64 bits: use "
                f"{name}.astype('float64')"
                + (" of its real and its imaginary part" if dtype.kind == "c" else "")
            )
    flags = array.flags
    if not flags.aligned or (not flags.forc and any(s % array.itemsize for s in array.strides)):
        array = array.copy()
    found: npt.NDArray[Any] = array
    return found


def matrix(x: Any, name: str, column: bool = False) -> tuple[npt.NDArray[Any], int]:
    """Returns x as a matrix, and its ndim. A vector is a row, or with `column` a column."""
    array = numbers(x, name)
    ndim = array.ndim
    if ndim == 0 or ndim > 2:
        raise WrongShape(
            f"{name} has {ndim} dimensions; a matrix has two, and a vector one",
            "multiply the matrices of a stack one by one" if ndim else "use numpy for a scalar",
        )
    if ndim == 1:
        array = array[:, None] if column else array[None, :]
    return array, ndim


def view(array: npt.NDArray[Any]) -> Any:
    """Returns the sherd_view of a matrix, whose memory must live as long as the view is used."""
    size, (rows, cols), (down, across) = array.itemsize, array.shape, array.strides
    flags = array.flags
    if flags.c_contiguous:  # an attribute `ctypes` takes ten times as long
        data = ffi.from_buffer(array)
    elif flags.f_contiguous:
        data = ffi.from_buffer(array.T)
    else:
        data = ffi.cast("void *", array.ctypes.data)
    dtype = _DTYPES[array.dtype]
    return ffi.new(_VIEW, [data, dtype, rows, cols, down // size, across // size])[0]


def shape_view(rows: int, cols: int) -> Any:
    """Returns the view of a matrix of which only the shape is known."""
    return ffi.new(_VIEW, [ffi.NULL, lib.SHERD_F64, rows, cols, cols, 1])[0]


def array_of(found: Any) -> npt.NDArray[np.float64]:
    """Returns a copy of a matrix of the library, as float64."""
    out = np.empty((found.rows, found.cols))
    if out.size:
        lib.sherd_view_read(found, doubles(out), found.cols)
    return out


def same_dtype_of(found: Any) -> npt.NDArray[Any]:
    """Returns a copy of a matrix of the library, of its dtype."""
    dtype = text_of(lib.sherd_dtype_name(found.dtype)) if found.rows else "<f8"
    if not (found.rows and found.col_stride == 1 and found.row_stride == found.cols):
        return array_of(found).astype(dtype, copy=False)
    whole = ffi.buffer(found.data, found.rows * found.cols * np.dtype(dtype).itemsize)
    made: npt.NDArray[Any] = np.frombuffer(whole, dtype).reshape(found.rows, found.cols).copy()
    return made


def doubles(array: npt.NDArray[np.float64]) -> Any:
    """Returns the address of a C-contiguous array of float64."""
    return ffi.from_buffer(_DOUBLES, array)


def as_in_numpy(made: npt.NDArray[np.float64], rows: int, cols: int) -> npt.NDArray[np.float64]:
    """Returns a product as numpy.matmul does: without the dimension of a vector."""
    if rows == 1:
        made = made[0]
    return made[..., 0] if cols == 1 else made


def result(
    out: Optional[npt.NDArray[np.float64]], rows: int, cols: int, operands: tuple[Any, ...]
) -> npt.NDArray[np.float64]:
    """Returns the array for a result: `out` if it is given and fits, otherwise a new one."""
    if out is None:
        return np.empty((rows, cols))
    if not isinstance(out, np.ndarray) or out.dtype != np.float64 or not out.flags.c_contiguous:
        raise InvalidArgument("out is not a C-contiguous array of float64", "numpy.empty makes one")
    if out.shape != (rows, cols):
        raise WrongShape(f"out has shape {out.shape}, and the result ({rows}, {cols})")
    if not out.flags.writeable:
        raise InvalidArgument("out is read-only", "pass a copy")
    if any(np.may_share_memory(out, x) for x in operands):
        raise InvalidArgument(
            "out shares memory with an operand", "numpy.empty makes another array"
        )
    return out
