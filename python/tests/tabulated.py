"""What a tabulated form means: an evaluator of the JSON in plain NumPy, without UFL or basix.

This is the reference that readers of tabulated forms are compared with. It knows nothing of the
exporter: it reads the document alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray
Json = dict[str, Any]

SIDES = {"+": 0, "-": 1}


@dataclass
class Local:
    """The data of one cell or facet; lists are by side (one entry, two for interior facets)."""

    functions: list[list[Array]]
    """[side][function]: local values [columns, block], transforms applied."""
    constants: list[Array]
    """Flat components of each constant."""
    facets: list[int] = field(default_factory=lambda: [0])
    """[side]: the local facet."""
    permutations: list[int] = field(default_factory=lambda: [0, 0])
    """[side]: the facet's orientation."""


def _bessel(kind: str, order: int, x: float) -> float:
    """Bessel functions of integer order by their integral representations (Gauss-Legendre)."""
    points, weights = np.polynomial.legendre.leggauss(200)
    s, ws = (points + 1) * math.pi / 2, weights / 2
    if kind == "j":
        return float(ws @ np.cos(order * s - x * np.sin(s)))
    if kind == "i":
        return float(ws @ (np.exp(x * np.cos(s)) * np.cos(order * s)))
    # exp(-x sinh t) is below 1e-300 at the end for x > 0.1.
    t, wt = (points + 1) * 4.6, weights * 4.6
    if kind == "k":
        return float(wt @ (np.exp(-x * np.cosh(t)) * np.cosh(order * t)))
    tail = (np.exp(order * t) + (-1) ** order * np.exp(-order * t)) * np.exp(-x * np.sinh(t))
    return float(ws @ np.sin(x * np.sin(s) - order * s)) - float(wt @ tail) / math.pi


_UNARY = {
    "abs": np.abs, "sqrt": np.sqrt, "exp": np.exp, "ln": np.log, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "sign": np.sign, "erf": np.vectorize(math.erf),
    "conj": np.conj, "real": np.real, "imag": np.imag,
}  # fmt: skip
_BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "power": np.power, "atan2": np.arctan2, "min": np.minimum, "max": np.maximum,
    "and": np.logical_and, "or": np.logical_or, "complex": lambda re, im: re + 1j * im,
}  # fmt: skip
_COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip


def number_type(form: Json) -> type:
    """The type of coefficients, constants and results, in double precision."""
    return complex if form["scalar"].startswith("c") else float


def _values(written: Any) -> Array:
    """A table, which may be written as factors: `T[(q, r, ..), d] = F_0[q, i] F_1[r, j] ..`, `columns[d]` is `(i, j, ..)`."""
    if not isinstance(written, dict):
        return np.asarray(written, dtype=float)
    factors = [np.asarray(factor, dtype=float) for factor in written["factors"]]
    rows, dofs = (tuple(factor.shape[axis] for factor in factors) for axis in (0, 1))
    columns = written.get("columns", range(math.prod(dofs)))
    points, functions = np.unravel_index(range(math.prod(rows)), rows), np.unravel_index(list(columns), dofs)
    table = np.ones((math.prod(rows), len(columns)))
    for factor, point, function in zip(factors, points, functions, strict=True):
        table = table * factor[np.ix_(point, function)]
    return table


class Integral:
    """One integral of a document, with its tables as arrays."""

    def __init__(self, form: Json, position: int) -> None:
        self.form = form
        self.data = form["integrals"][position]
        self.kind = self.data["type"]
        self.tables = [_values(t["values"]) for t in self.data["tables"]]
        self.permuted = [t.get("permutations", 1) > 1 for t in self.data["tables"]]
        self.weights = np.asarray(self.data["weights"], dtype=float)

    def table(self, position: int, local: Local, side: int) -> Array:
        """The table [points, dofs] that holds for one facet in one orientation."""
        table = self.tables[position]
        if self.kind != "cell":
            if self.permuted[position]:
                table = table[local.permutations[side]]
            table = table[local.facets[side]]
        # One row stands for all points.
        return np.broadcast_to(table, (len(self.weights), table.shape[1]))

    def nodes(self, local: Local) -> list[Array]:
        """Values of all nodes [points]."""
        values: list[Array] = []
        for node in self.data["nodes"]:
            value = self._node(node, values, local)
            values.append(np.broadcast_to(value, self.weights.shape))
        return values

    def _node(self, node: list[Any], v: list[Array], local: Local) -> Any:
        operation, *rest = node
        match operation:
            case "literal":
                return rest[0]
            case "constant":
                return local.constants[rest[0]][rest[1]]
            case "weight":
                return self.weights
            case "evaluation":
                return self._evaluation(self.data["evaluations"][rest[0]], local)
            case "table":
                side = SIDES[rest[1]] if len(rest) > 1 else 0
                return self.table(rest[0], local, side)[:, 0]
            case "negate":
                return -v[rest[0]]
            case "not":
                return np.logical_not(v[rest[0]])
            case "select":
                return np.where(v[rest[0]], v[rest[1]], v[rest[2]])
            case "compare":
                return _COMPARE[rest[0]](v[rest[1]], v[rest[2]])
            case "bessel":
                return np.array([_bessel(rest[0], rest[1], x) for x in v[rest[2]]])
            case "math" if len(rest) == 2:
                return _UNARY[rest[0]](v[rest[1]])
            case "math":
                return _BINARY[rest[0]](v[rest[1]], v[rest[2]])
        return _BINARY[operation](v[rest[0]], v[rest[1]])

    def _evaluation(self, entry: Json, local: Local) -> Array:
        side = SIDES[entry.get("side", "+")]
        table = self.table(entry["table"], local, side)
        values = local.functions[side][entry["function"]]
        columns = entry["offset"] + entry["stride"] * np.arange(table.shape[1])
        return table @ values[columns, entry["component"]]

    def _slots(self, access: Json, space: Json, local: Local) -> tuple[Array, Array]:
        """The table [points, dofs] of an argument and its places in the local tensor."""
        side = SIDES[access.get("side", "+")]
        table = self.table(access["table"], local, side)
        columns = access["offset"] + access["stride"] * np.arange(table.shape[1])
        size = space["columns"] * space["block"]
        return table, side * size + columns * space["block"] + access["component"]

    def tensors(self, local: Local, magnitude: bool = False) -> list[Array]:
        """Local tensors, one an output; in interior facets both sides, "+" first.

        With `magnitude`, absolute values are summed: the scale of rounding errors.
        """
        sides = 2 if self.kind == "interior_facet" else 1
        spaces = self.form["spaces"]
        results = [
            np.zeros(
                [sides * spaces[s]["columns"] * spaces[s]["block"] for s in output["spaces"]],
                float if magnitude else number_type(self.form),
            )
            for output in self.form["outputs"]
        ]
        values = self.nodes(local)
        for term in self.data["terms"]:
            own = self.form["outputs"][term["output"]]["spaces"]
            pairs = zip(term["arguments"], own, strict=True)
            parts = [self._slots(access, spaces[s], local) for access, s in pairs]
            factor = values[term["factor"]]
            if magnitude:
                factor = np.abs(factor)
                parts = [(np.abs(table), places) for table, places in parts]
            self._scatter(results[term["output"]], factor, parts)
        return results

    @staticmethod
    def _scatter(result: Array, factor: Array, parts: list[tuple[Array, Array]]) -> None:
        if not parts:
            result += np.sum(factor)
        elif len(parts) == 1:
            result[parts[0][1]] += parts[0][0].T @ factor
        else:
            (test, rows), (trial, columns) = parts
            result[np.ix_(rows, columns)] += test.T @ (factor[:, None] * trial)


def transform(space: Json, values: Array, states: Array, transpose: bool = False) -> Array:
    """Applies a space's transforms to local values [columns, ...]: M v, or M^T v."""
    result = values.copy()
    for column, entry in enumerate(space.get("transforms", [])):
        matrix = np.asarray(entry["matrices"][states[column]])
        own = result[entry["dofs"]]
        result[entry["dofs"]] = np.tensordot(matrix.T if transpose else matrix, own, axes=1)
    return result


@dataclass
class Mesh:
    """What a caller binds: maps and arrays by name, and lists of entities.

    `maps[space]` is [n_cells, columns]; `states[space]` is [n_cells, n_transforms];
    `arrays[function]` is [n, block]; `cells[subdomain]`, `facets[kind]` give the entities.
    """

    maps: list[Array]
    arrays: list[Array]
    constants: list[Array]
    states: list[Array]
    n_cells: int
    cells: dict[int, Array] = field(default_factory=dict)
    """Cells by subdomain id."""
    facets: dict[str, Json] = field(default_factory=dict)
    """By type: facet_cells, local_facets, facet_states [n_facets(, 2)], tags [n_facets]."""


def assemble(form: Json, mesh: Mesh) -> list[Array]:
    """Global results: a number, a vector [n * block], or a dense matrix, one an output."""
    sizes = [
        (int(m.max()) + 1) * s["block"] for m, s in zip(mesh.maps, form["spaces"], strict=True)
    ]
    results = [
        np.zeros([sizes[s] for s in output["spaces"]], number_type(form)) for output in form["outputs"]
    ]
    for position in range(len(form["integrals"])):
        integral = Integral(form, position)
        for cells, facets, states in entities(integral, mesh):
            local = gather(form, mesh, cells, facets, states)
            tensors = integral.tensors(local)
            for output, tensor, result in zip(form["outputs"], tensors, results, strict=True):
                _add(form, mesh, output, cells, tensor, result)
    return results


def entities(integral: Integral, mesh: Mesh) -> list[tuple[list[int], list[int], list[int]]]:
    ids = integral.data["subdomains"]
    if integral.kind == "cell":
        chosen = np.concatenate([mesh.cells[i] for i in ids]) if ids else range(mesh.n_cells)
        return [([int(c)], [0], [0]) for c in chosen]
    data = mesh.facets[integral.kind]
    found = []
    for i, tag in enumerate(data["tags"]):
        for _ in range(ids.count(tag) if ids else 1):
            row = [np.atleast_1d(data[k][i]) for k in ("facet_cells", "local_facets")]
            states = np.atleast_1d(data["facet_states"][i]).tolist()
            found.append((row[0].tolist(), row[1].tolist(), states))
    return found


def gather(
    form: Json, mesh: Mesh, cells: list[int], facets: list[int], states: list[int]
) -> Local:
    functions = []
    for cell in cells:
        side = []
        for position, entry in enumerate(form["functions"]):
            s = entry["space"]
            values = mesh.arrays[position][mesh.maps[s][cell]]
            side.append(transform(form["spaces"][s], values, mesh.states[s][cell]))
        functions.append(side)
    return Local(functions, mesh.constants, facets, states)


def _add(
    form: Json, mesh: Mesh, output: Json, cells: list[int], tensor: Array, result: Array
) -> None:
    """Transforms a local tensor and scatters it."""
    places = []
    for axis, s in enumerate(output["spaces"]):
        space = form["spaces"][s]
        block, size = space["block"], space["columns"]
        moved = np.moveaxis(tensor, axis, 0)
        shape = moved.shape
        moved = moved.reshape(len(cells), size, block, *shape[1:])
        moved = np.stack(
            [
                transform(space, m, mesh.states[s][c], True)
                for m, c in zip(moved, cells, strict=True)
            ]
        )
        tensor = np.moveaxis(moved.reshape(shape), 0, axis)
        dofs = mesh.maps[s][cells][:, :, None] * block + np.arange(block)
        places.append(dofs.reshape(-1))
    np.add.at(result, np.ix_(*places) if places else (), tensor)
