"""Spaces: how an element's degrees of freedom are numbered, and what orientation does to them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import basix
import basix.ufl
import numpy as np
import numpy.typing as npt

from .errors import UnsupportedForm

Element = Any
"""A `basix.ufl` element."""

CELLS = ("interval", "triangle", "tetrahedron", "quadrilateral", "hexahedron", "prism", "pyramid")


def check_element(element: Element) -> None:
    """Refuses elements that are not basix's, and cells that are not there."""
    if not isinstance(element, basix.ufl._ElementBase):
        raise UnsupportedForm(
            f"element `{element}` is not an element of basix.ufl",
            "make it with `basix.ufl.element` or wrap it with `basix.ufl.wrap_element`",
        )
    cell = cell_name(element)
    if cell not in CELLS:
        raise UnsupportedForm(f"elements on a `{cell}`", f"use one of {', '.join(CELLS)}")


def cell_name(element: Element) -> str:
    """The cell's name; `element.cell` makes all sub-entities again, which takes 0.3 ms."""
    return str(element.cell_type.name)


def component_access(element: Element, component: int) -> tuple[Element, int, int, int]:
    """Where the flat reference component `component` of `element` is found.

    Returns:
        The element to tabulate, the first column, the step between columns, and the component in
        the block: column `offset + stride * i`, component `block component` is degree of freedom
        `i` of the element to tabulate.
    """
    part, offset, stride = element.get_component_element(component)
    if element.block_size > 1:
        return part, 0, 1, int(offset)
    return part, int(offset), int(stride), 0


def columns(element: Element) -> int:
    """Degrees of freedom of one cell, a block counted once."""
    return element.dim // element.block_size


def describe(element: Element) -> str:
    """A line for people."""
    if element.is_mixed:
        return "mixed (" + ", ".join(describe(part) for part in element.sub_elements) + ")"
    if element.block_size > 1:
        shape = "symmetric " if element.is_symmetric else ""
        part = element._sub_element
        return f"{describe(part)}, {shape}block {'x'.join(map(str, element.block_shape))}"
    if element.is_quadrature:
        return f"quadrature element, {element.dim} points"
    if element.is_real:
        return "real"
    name = f"{'discontinuous ' if element.discontinuous else ''}{element.family_name}"
    name += f" {element.degree}"
    variant = element.lagrange_variant
    if variant not in (None, basix.LagrangeVariant.unset) and element.degree > 2:
        name += f", {variant.name}"
    return name


def _leaves(element: Element) -> Iterator[tuple[Element, npt.NDArray[np.intp]]]:
    """Every unblocked element in `element`, with the columns of its degrees of freedom [dim]."""
    if element.block_size > 1:
        yield element._sub_element, np.arange(columns(element))
    elif element.is_mixed:
        start = 0
        for part in element.sub_elements:
            size = part.block_size
            for leaf, own in _leaves(part):
                for component in range(size):
                    yield leaf, start + component + size * own
            start += part.dim
    else:
        yield element, np.arange(element.dim)


def _basix(element: Element) -> basix.finite_element.FiniteElement | None:
    return None if element.is_quadrature or element.is_real else element.basix_element


def scalar_element(element: Element) -> basix.finite_element.FiniteElement | None:
    """The plain element of a scalar one, of which basix.ufl has components, too."""
    whole = element._element if isinstance(element, basix.ufl._ComponentElement) else element
    return _basix(whole) if whole.reference_value_size == 1 else None


def nodes(element: Element) -> list[list[float] | None] | None:
    """Points of the degrees of freedom by column [columns][tdim]; None if not all are such."""
    points: list[Any] = [None] * columns(element)
    for leaf, own in _leaves(element):
        found = None
        if leaf.is_quadrature:
            found = leaf.custom_quadrature()[0]
        elif not leaf.is_real:
            plain = leaf.basix_element
            if plain.interpolation_is_identity and plain.map_type == basix.MapType.identity:
                found = plain.points
        if found is None or len(found) != len(own):
            return None
        for column, point in zip(own, found, strict=True):
            points[column] = [float(value) for value in point]
    return points


@lru_cache(maxsize=256)
def _entity_matrices(
    plain: basix.finite_element.FiniteElement,
) -> list[tuple[int, int, list[int], list[list[list[float]]]]]:
    """Transforms of a plain element: dimension, entity, degrees of freedom, a matrix a state."""
    if plain.dof_transformations_are_identity or plain.dof_transformations_are_permutations:
        return []
    topology = basix.topology(plain.cell_type)
    found = []
    for dim in range(1, len(topology) - 1):
        for entity in range(len(topology[dim])):
            dofs = list(plain.entity_dofs[dim][entity])
            if not dofs:
                continue
            matrices = [matrix.tolist() for matrix in _matrices(plain, dim, entity)]
            if any(matrix != matrices[0] for matrix in matrices):
                found.append((dim, entity, dofs, matrices))
    return found


def _matrices(
    plain: basix.finite_element.FiniteElement, dim: int, entity: int
) -> list[npt.NDArray[np.float64]]:
    """What the degrees of freedom of an entity are multiplied by, in each of its states."""
    dofs = list(plain.entity_dofs[dim][entity])
    shift, states = state_bits(plain.cell_type, dim, entity)
    found = []
    for state in range(states):
        data = np.eye(plain.dim)
        plain.T_apply(data.reshape(-1), plain.dim, state << shift)
        found.append(_clean(data.T[np.ix_(dofs, dofs)]))
    return found


@lru_cache(maxsize=256)
def permutations(
    plain: basix.finite_element.FiniteElement, dim: int, entity: int
) -> npt.NDArray[np.intp] | None:
    """Which of the common degrees of freedom of an entity each local one is, by state [states][dofs].

    None where the numbering does not depend on the state: transforms carry orientation, or nothing does.
    """
    if plain.dof_transformations_are_identity or not plain.dof_transformations_are_permutations:
        return None
    return np.stack([matrix.argmax(axis=1) for matrix in _matrices(plain, dim, entity)])


def _clean(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    rounded = np.round(matrix)
    return np.where(np.abs(matrix - rounded) < 1e-14, rounded, matrix) + 0.0


def state_bits(cell: basix.CellType | str, dim: int, entity: int) -> tuple[int, int]:
    """Where an entity's state stands in basix's cell permutation info: shift, number of states.

    An edge has one bit (reversed or not); a face has three, reflected first, then its rotations:
    the state is `reflected + 2 * rotations`.
    """
    kind = basix.CellType[cell] if isinstance(cell, str) else cell
    topology = basix.topology(kind)
    if dim == 1:
        shift = 3 * len(topology[2]) if len(topology) == 4 else 0
        return shift + entity, 2
    return 3 * entity, 2 * len(topology[2][entity])


def transforms(element: Element) -> list[dict[str, Any]]:
    """Entries of a space's `transforms`; empty where the numbering alone carries orientation."""
    found = []
    for leaf, own in _leaves(element):
        plain = _basix(leaf)
        if plain is None:
            continue
        for dim, entity, dofs, matrices in _entity_matrices(plain):
            chosen = [int(own[dof]) for dof in dofs]
            found.append({"entity": [dim, entity], "dofs": chosen, "matrices": matrices})
    return found


def states(space: dict[str, Any], cell: str, cell_info: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """States of a space's transforms from basix's (DOLFINx's) cell permutation info.

    Args:
        space: An entry of `spaces` of a tabulated form.
        cell: The form's `cell`.
        cell_info: [n_cells] unsigned integers, `mesh.topology.get_cell_permutation_info()`.

    Returns:
        The argument `<space>_states` [n_cells, n_transforms].
    """
    info = np.asarray(cell_info, dtype=np.uint32)
    entries = space.get("transforms", [])
    result = np.zeros((len(info), len(entries)), dtype=np.int32)
    for column, entry in enumerate(entries):
        dim, entity = entry["entity"]
        shift, count = state_bits(cell, dim, entity)
        mask = 1 if count == 2 else 7
        result[:, column] = (info >> np.uint32(shift)) & np.uint32(mask)
    return result
