"""Sparse matrices of bilinear forms, by rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from kingpost import _kingpost
from kingpost.arrays import refuse_masked
from kingpost.dlpack import CUDA
from kingpost.errors import FormError, MissingArgument

if TYPE_CHECKING:
    from kingpost.operator import Operator


class Csr(NamedTuple):
    """A matrix by rows: ``scipy.sparse.csr_matrix((csr.data, csr.indices, csr.indptr))``."""

    indptr: Any
    indices: Any
    data: Any


@dataclass(frozen=True)
class Pattern:
    """Which entries of a matrix are stored, and where those of each entity stand."""

    #: The name of the matrix in the form.
    name: str
    #: Number of rows and of columns.
    shape: tuple[int, int]
    #: Place of the first entry of each row, and after them the number of entries; ``int32``.
    indptr: Any
    #: The column of each entry, ascending in a row; ``int32``.
    indices: Any
    #: By part of the form: the argument for the places, and its value.
    positions: Mapping[str, tuple[str, Any]]


def patterns(
    operator: Operator, given: dict[str, Any], shape: Optional[tuple[int, int]] = None
) -> dict[str, Pattern]:
    """The patterns of all matrices of a form, by name."""
    import numpy

    wanted: dict[str, list[tuple]] = {}
    for part in operator.parts:
        for matrix in part.form.matrices:
            wanted.setdefault(matrix[0], []).append((part.name, matrix))
    if not wanted:
        raise FormError("the form has no sparse matrix; give `kingpost.jit` a bilinear form and `matrix=\"sparse\"`")
    found = {}
    for name, parts in wanted.items():
        entities, like = [], None
        for part, (_, _, spaces, cells) in parts:
            own = {**given, **given.get(part, {})}
            lists = []
            for name_of_map, columns, block in spaces:
                like = _taken(own, name_of_map, name)
                dofs = _host(like).reshape(-1, columns)
                if cells is not None:
                    listed = _host(_taken(own, cells[0], name))
                    dofs = dofs[listed.reshape(-1, cells[1])].reshape(len(listed), -1)
                numbers = dofs[:, :, None] * block + numpy.arange(block)
                lists.append(numpy.ascontiguousarray(numbers.reshape(len(dofs), -1), dtype="i4"))
            entities.append(lists)
        n_rows, n_columns = shape or (
            max((int(lists[axis].max(initial=-1)) + 1 for lists in entities), default=0) for axis in (0, 1)
        )
        raw = [(rows.shape[1], columns.shape[1], rows.tobytes(), columns.tobytes()) for rows, columns in entities]
        indptr, indices, places = _kingpost.csr_pattern(n_rows, n_columns, raw)
        positions = {}
        for (part, matrix), (rows, columns), place in zip(parts, entities, places):
            value = numpy.frombuffer(place, "i4").reshape(len(rows), rows.shape[1], columns.shape[1])
            positions[part] = (matrix[1], _beside(like, value))
        starts, entries = (_beside(like, numpy.frombuffer(a, "i4")) for a in (indptr, indices))
        found[name] = Pattern(name, (n_rows, n_columns), starts, entries, positions)
    return found


def zeros(pattern: Pattern, dtype: str) -> Any:
    """Values of a matrix, where its pattern lies."""
    import numpy

    values = numpy.zeros(pattern.indices.shape, {"f64": "f8", "f32": "f4", "c128": "c16", "c64": "c8"}[dtype])
    return _beside(pattern.indices, values)


def _taken(given: dict[str, Any], name: str, matrix: str) -> Any:
    if name in given:
        refuse_masked(name, given[name])
        return given[name]
    error = MissingArgument(f"argument `{name}` is missing, which the pattern of `{matrix}` follows from")
    error.argument = name
    raise error


def _host(array: Any) -> Any:
    """The array as one of NumPy."""
    import numpy

    if hasattr(array, "cpu"):  # PyTorch
        return numpy.asarray(array.cpu())
    if hasattr(array, "__array__") and not hasattr(array, "get"):  # JAX's, on a card, too
        return numpy.asarray(array)
    if hasattr(array, "__cuda_array_interface__"):
        import cupy

        return cupy.asarray(array).get()
    if hasattr(array, "__dlpack__"):
        if array.__dlpack_device__()[0] not in CUDA:
            return numpy.from_dlpack(array)
        import cupy

        return cupy.from_dlpack(array).get()
    return numpy.asarray(array)


def _beside(like: Any, array: Any) -> Any:
    """An array of NumPy as one of the library and on the device of another."""
    if hasattr(like, "new_tensor"):  # PyTorch
        import torch

        return torch.from_numpy(array).to(like.device)
    if hasattr(like, "__cuda_array_interface__"):
        import cupy

        return cupy.asarray(array)
    return array
