"""Geometry: Jacobians, normals and sizes as nodes over the position's reference derivatives."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import basix
import numpy as np
import ufl.classes as uc
from ufl.algorithms.apply_geometry_lowering import apply_geometry_lowering

from .errors import FormError, UnsupportedForm
from .graph import Field, Graph
from .scope import Scope

Matrix = list[list[int]]

_PRESERVED = (uc.Jacobian, uc.SpatialCoordinate, uc.CellCoordinate, uc.FacetCoordinate)
_SQUARE = (*_PRESERVED, uc.JacobianInverse, uc.JacobianDeterminant)


@lru_cache(maxsize=512)
def lowered(quantity: Any, square: bool) -> Any:
    """A geometric quantity in terms of simpler ones, or itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return apply_geometry_lowering(quantity, _SQUARE if square else _PRESERVED)


class Geometry:
    """Nodes of geometric quantities by side, in one scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.graph: Graph = scope.graph
        self.frame = scope.frame
        self.gdim = scope.functions.domain(None).geometric_dimension
        self.tdim = self.frame.tdim
        self._inverses: dict[str | None, tuple[Matrix, int]] = {}

    @property
    def square(self) -> bool:
        """Whether the mesh is not a manifold in a larger space."""
        return self.gdim == self.tdim

    def position(self, i: int, side: str | None) -> int:
        """x_i."""
        return self.scope.field_node(Field(0, i, (0,) * self.tdim, side))

    def jacobian(self, i: int, k: int, side: str | None) -> int:
        """dx_i / dX_k."""
        counts = tuple(int(axis == k) for axis in range(self.tdim))
        return self.scope.field_node(Field(0, i, counts, side))

    def inverse(self, side: str | None) -> tuple[Matrix, int]:
        """The inverse Jacobian [tdim][gdim] and the determinant, where the Jacobian is square."""
        known = self._inverses.get(side)
        if known is None:
            axes = range(self.tdim)
            known = self._invert([[self.jacobian(i, k, side) for k in axes] for i in axes])
            self._inverses[side] = known
        return known

    def _invert(self, j: Matrix) -> tuple[Matrix, int]:
        graph, n = self.graph, len(j)
        if n == 1:
            return [[graph.divide(graph.one, j[0][0])]], j[0][0]
        cofactors = [[self._cofactor(j, row, column) for column in range(n)] for row in range(n)]
        determinant = graph.zero
        for column in range(n):
            term = graph.multiply(j[0][column], cofactors[0][column])
            determinant = graph.add(determinant, term)
        reciprocal = graph.divide(graph.one, determinant)
        inverse = [
            [graph.multiply(cofactors[column][row], reciprocal) for column in range(n)]
            for row in range(n)
        ]
        return inverse, determinant

    def _cofactor(self, j: Matrix, row: int, column: int) -> int:
        graph, n = self.graph, len(j)
        if n == 2:
            entry = j[1 - row][1 - column]
            return entry if row == column else graph.negate(entry)
        r0, r1 = (row + 1) % 3, (row + 2) % 3
        c0, c1 = (column + 1) % 3, (column + 2) % 3
        return graph.subtract(
            graph.multiply(j[r0][c0], j[r1][c1]), graph.multiply(j[r0][c1], j[r1][c0])
        )

    def reference(self, name: str, component: tuple[int, ...], side: str | None) -> int:
        """A number of the reference cell that differs by facet or by point."""
        return self.graph.intern("reference", name, component, side)

    def of_facet(self, name: str) -> int:
        """A number that is the same on both sides of a facet, and differs among the facets of a cell."""
        return self.reference(name, (), "+" if self.frame.kind == "interior_facet" else None)

    def vertices(self, factors: list[list[tuple[int, float]]], i: int, side: str | None) -> int:
        """A combination of vertex positions, component `i`; one for all facets or one a facet."""
        element = self.scope.functions.domain(side).ufl_coordinate_element()
        part = element._sub_element if element.block_size > 1 else element
        dofs = [part.entity_dofs[0][v][0] for v in range(len(self.scope.frames.of(side).geometry))]
        rows = tuple(tuple((dofs[v], factor) for v, factor in row) for row in factors)
        return self.scope.field_node(Field(0, i, (0,) * self.tdim, side, None, rows))

    def terminal(self, quantity: Any, component: tuple[int, ...], side: str | None) -> int | None:
        """The node of a quantity that needs no lowering, else None."""
        match type(quantity).__name__:
            case "SpatialCoordinate":
                return self.position(component[0], side)
            case "Jacobian":
                return self.jacobian(component[0], component[1], side)
            case "JacobianInverse" if self.square:
                return self.inverse(side)[0][component[0]][component[1]]
            case "JacobianDeterminant" if self.square:
                return self.inverse(side)[1]
            case "CellOrientation":
                return self.graph.one
            case "QuadratureWeight":
                return self.of_facet("facet_weight") if self.frame.points.ndim == 3 else self.graph.intern("weight")
            case "ReferenceCellVolume":
                return self.graph.literal(basix.cell.volume(self.scope.frames.of(side).type))
            case "ReferenceFacetVolume":
                volumes = basix.cell.facet_reference_volumes(self.frame.type)
                return self.of_facet("facet_volume") if len(set(volumes)) > 1 else self.graph.literal(volumes[0])
            case "CellCoordinate":
                return self.reference("cell_coordinate", component, side)
            case "CellOrigin":
                return self.vertices([[(0, 1.0)]], component[0], side)
            case "CellVertices":
                return self.vertices([[(component[0], 1.0)]], component[1], side)
            case "CellEdgeVectors":
                first, second = self.scope.frames.of(side).topology[1][component[0]]
                return self.vertices([[(first, 1.0), (second, -1.0)]], component[1], side)
        return self._of_facet(quantity, component, side)

    def _of_facet(self, quantity: Any, component: tuple[int, ...], side: str | None) -> int | None:
        if not isinstance(quantity, uc.GeometricFacetQuantity):
            return self._reference_edge(quantity, component, side)
        if self.frame.kind == "cell":
            raise FormError(
                f"`{type(quantity).__name__}` in an integral over cells: only facets have one; "
                "integrate with `ds` or `dS`"
            )
        match type(quantity).__name__:
            case "FacetCoordinate":
                return self.reference("facet_coordinate", component, None)
            case "ReferenceNormal":
                return self.reference("reference_normal", component, side)
            case "CellFacetJacobian":
                return self.reference("cell_facet_jacobian", component, side)
            case "CellFacetOrigin":
                return self.reference("cell_facet_origin", component, side)
            case "FacetOrientation":
                return self.reference("facet_orientation", (), side)
            case "FacetOrigin":
                return self.vertices(
                    [[(facet[0], 1.0)] for facet in self.scope.frames.of(side).topology[-2]], component[0], side
                )
            case "FacetEdgeVectors":
                return self.vertices(self._facet_edges(component[0], side), component[1], side)
        return None

    def _facet_edges(self, edge: int, side: str | None) -> list[list[tuple[int, float]]]:
        rows, frame = [], self.scope.frames.of(side)
        for facet, kind in enumerate(basix.cell.subentity_types(frame.type)[2]):
            corners = frame.topology[2][facet]
            first, second = basix.topology(kind)[1][edge]
            rows.append([(corners[first], 1.0), (corners[second], -1.0)])
        return rows

    def _reference_edge(self, quantity: Any, component: tuple[int, ...], side: str | None) -> int | None:
        if isinstance(quantity, uc.ReferenceCellEdgeVectors):
            frame = self.scope.frames.of(side)
            first, second = frame.topology[1][component[0]]
            vector = frame.geometry[second] - frame.geometry[first]
            return self.graph.literal(vector[component[1]])
        return None

    def unsupported(self, quantity: Any) -> UnsupportedForm:
        """The error for a quantity that no lowering brings further."""
        name = type(quantity).__name__
        return UnsupportedForm(
            f"`{name}` on cells of `{self.frame.cell}` with a coordinate element of degree "
            f"{self.scope.functions.domain(None).ufl_coordinate_element().embedded_superdegree}",
            "pass it as a coefficient on a discontinuous space of degree 0",
        )


def reference_values(name: str, component: tuple[int, ...], cell: basix.CellType) -> np.ndarray:
    """A number a facet [facets] of the reference cell."""
    match name:
        case "reference_normal":
            return np.asarray(basix.cell.facet_outward_normals(cell))[:, component[0]]
        case "cell_facet_jacobian":
            return np.asarray(basix.cell.facet_jacobians(cell))[:, component[0], component[1]]
        case "facet_volume":
            return np.asarray(basix.cell.facet_reference_volumes(cell))
        case "facet_orientation":
            return np.asarray(basix.cell.facet_orientations(cell), dtype=np.float64)
        case "cell_facet_origin":
            corners = np.asarray(basix.geometry(cell))
            return np.asarray([corners[f[0]][component[0]] for f in basix.topology(cell)[-2]])
    raise AssertionError(f"`{name}` is not a number a facet: this is a bug of the exporter")
