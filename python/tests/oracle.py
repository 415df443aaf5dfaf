"""FFCx as the oracle: local tensors of compiled C against the evaluator's, on random cells."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import basix
import numpy as np
import ufl
from tabulated import Integral, Local, number_type

KINDS = {"cell": 0, "exterior_facet": 1, "interior_facet": 2}


@lru_cache(maxsize=1)
def cache_dir() -> str:
    """A folder for compiled forms that goes with the process."""
    return tempfile.mkdtemp(prefix="ffcx-oracle-")


class OracleRefusal(Exception):
    """FFCx does not compile a form."""


def compile_forms(forms: list[Any], scalar: type = float) -> tuple[list[Any], Any]:
    """Compiles forms with FFCx to one module; -O0, since only values are compared.

    FFCx snaps table entries within 1e-6 of -1, 0 and 1 by default: here within 1e-13.
    """
    import ffcx.codegeneration.jit as jit

    options = {"scalar_type": np.dtype(scalar).type, "table_rtol": 1e-13, "table_atol": 1e-13}
    try:
        compiled, module, _ = jit.compile_forms(
            forms, options=options, cache_dir=cache_dir(),
            cffi_extra_compile_args=["-O0", "-w"], cffi_libraries=["m"],
        )  # fmt: skip
    # UFL's `ArityMismatch` is no `Exception`.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise OracleRefusal(f"{type(error).__name__}: {error}") from error
    return compiled, module.ffi


def parts_of(form: Any) -> list[Any]:
    """The form by rules where two of them stand in one kernel.

    FFCx 0.11 takes values of a rule with one point for those of another rule of the same kernel.
    """
    rules: dict[Any, dict[str, list[Any]]] = {}
    for integral in form.integrals():
        kernel = rules.setdefault((integral.integral_type(), integral.subdomain_id()), {})
        kernel.setdefault(repr(integral.metadata()), []).append(integral)
    if all(len(kernel) == 1 for kernel in rules.values()):
        return [form]
    parts = [ufl.Form(group) for kernel in rules.values() for group in kernel.values()]
    return [part for part in parts if not ufl.algorithms.expand_derivatives(part).empty()]


def random_points(rng: np.random.Generator, cell: str, gdim: int, nodes: np.ndarray) -> np.ndarray:
    """Nodes of a random cell of either orientation [n, gdim]: affine, then perturbed."""
    tdim = len(basix.topology(basix.CellType[cell])) - 1
    frame, _ = np.linalg.qr(rng.normal(size=(gdim, gdim)))
    scale = frame[:, :tdim] @ np.diag(rng.uniform(0.6, 1.6, tdim))
    size = 0.04 if len(nodes) > tdim + 1 else 0.1
    return nodes @ scale.T + rng.uniform(-1, 1, gdim) + rng.uniform(-size, size, (len(nodes), gdim))


def random_local(
    rng: np.random.Generator, form: dict[str, Any], kind: str, facets: list[int],
    low: float, high: float,
) -> Local:  # fmt: skip
    """Random data of one entity; later functions have larger values, from `low` to `high`."""
    sides = 2 if kind == "interior_facet" else 1
    cell = form["cell"]
    step = (high - low) / len(form["functions"])
    turned = number_type(form) is complex
    drawn = lambda start, size, shape: start + (  # noqa: E731
        rng.uniform(0, size, shape) + (1j * rng.uniform(-size, size, shape) if turned else 0)
    )
    functions: list[list[np.ndarray]] = []
    for _ in range(sides):
        nodes = np.asarray(form["spaces"][0]["nodes"])
        values = [random_points(rng, cell, form["gdim"], nodes)]
        for i, entry in enumerate(form["functions"][1:]):
            space = form["spaces"][entry["space"]]
            shape = (space["columns"], space["block"])
            values.append(drawn(low + step * i, step, shape))
        functions.append(values)
    constants = [drawn(low, high - low, int(np.prod(c["shape"]))) for c in form["constants"]]
    topology = basix.topology(basix.CellType[cell])
    tdim = len(topology) - 1
    count = {1: 1, 2: 2, 3: 2 * len(topology[2][facets[0]]) if tdim == 3 else 0}[tdim]
    permutations = rng.integers(0, count, 2).tolist() if sides == 2 else [0, 0]
    return Local(functions, constants, facets, permutations)


@dataclass
class Part:
    """A compiled part of a form, and which of the document's functions and constants it reads."""

    compiled: Any
    functions: list[int]
    constants: list[int]

    def integrals(self, kind: str) -> dict[int, list[Any]]:
        """Integrals of a type by subdomain."""
        c, found = self.compiled, {}
        first, last = (c.form_integral_offsets[KINDS[kind] + i] for i in range(2))
        for i in range(first, last):
            found.setdefault(c.form_integral_ids[i], []).append(c.form_integrals[i])
        return found


class Oracle:
    """A form that FFCx compiled."""

    def __init__(self, form: Any, scalar: type = float) -> None:
        parts = parts_of(form)
        self.scalar = scalar
        (domain,) = form.ufl_domains()
        self.cell = domain.ufl_coordinate_element().cell_type.name
        compiled, self.ffi = compile_forms(parts, scalar)
        coefficients, constants = list(form.coefficients()), list(form.constants())
        self.parts = []
        for part, c in zip(parts, compiled, strict=True):
            own = part.coefficients()
            used = [own[c.original_coefficient_positions[i]] for i in range(c.num_coefficients)]
            self.parts.append(
                Part(
                    c, [1 + coefficients.index(f) for f in used],
                    [constants.index(k) for k in part.constants()],
                )
            )  # fmt: skip

    def subdomains(self, kind: str) -> set[int]:
        """Subdomains with an integral of a type; -1 is everywhere."""
        return {i for part in self.parts for i in part.integrals(kind)}

    def tensor(self, kind: str, subdomain: int, local: Local, shape: tuple[int, ...]) -> np.ndarray:
        """The local tensor of all integrals of a type on a subdomain.

        Facets of several kinds have a kernel each.
        """
        total = np.zeros(shape, self.scalar)
        for part in self.parts:
            found = part.integrals(kind).get(subdomain, [])
            if kind != "cell" and len({integral.domain for integral in found}) > 1:
                own = basix.cell.subentity_types(basix.CellType[self.cell])[-2][local.facets[0]]
                found = [integral for integral in found if integral.domain == int(own)]
            for integral in found:
                total += self._one(part, integral, local, shape)
        return total

    def _one(self, part: Part, integral: Any, s: Local, shape: tuple[int, ...]) -> np.ndarray:
        sides = len(s.functions)
        w = [s.functions[side][i].reshape(-1) for i in part.functions for side in range(sides)]
        c = [s.constants[i] for i in part.constants]
        x = np.zeros((sides, len(s.functions[0][0]), 3))
        for side in range(sides):
            x[side, :, : s.functions[side][0].shape[1]] = s.functions[side][0]
        a = np.zeros(max(int(np.prod(shape)), 1), self.scalar)
        none = np.zeros(1, self.scalar)
        numbers = [a, np.concatenate([*w, none]), np.concatenate([*c, none]), x.reshape(-1)]
        types = ["double _Complex" if self.scalar is complex else "double"] * 3 + ["double"]
        facets, turns = np.array(s.facets, np.int32), np.array(s.permutations, np.uint8)
        cast = self.ffi.cast
        getattr(integral, f"tabulate_tensor_{np.dtype(self.scalar).name}")(
            *(cast(f"{t}*", self.ffi.from_buffer(r)) for t, r in zip(types, numbers, strict=True)),
            cast("int*", self.ffi.from_buffer(facets)),
            cast("uint8_t*", self.ffi.from_buffer(turns)), self.ffi.NULL,
        )  # fmt: skip
        return a.reshape(shape)


def facet_choices(form: dict[str, Any], kind: str, rng: np.random.Generator) -> list[list[int]]:
    """Every local facet; in interior facets each with a random one on the other side."""
    if kind == "cell":
        return [[0], [0]]
    kinds = basix.cell.subentity_types(basix.CellType[form["cell"]])[-2]
    n = len(kinds)
    if kind == "exterior_facet":
        return [[f] for f in range(n)]
    alike = [[g for g in range(n) if kinds[g] == kinds[f]] for f in range(n)]
    return [[f, int(rng.choice(alike[f]))] for f in range(n)] * 2


class NotFinite(Exception):
    """The oracle's tensor is not finite: the data are outside the domain of a function."""


def compare(document: dict[str, Any], form: Any, seed: int) -> float:
    """The largest difference of local tensors from FFCx's, relative to each tensor's largest entry.

    Where a tensor cancels to rounding errors (below 1e-10 of the sums of absolute values, or below
    1e-12 for data of order 1), the scale is that of these sums, and 1.

    Raises:
        OracleRefusal: FFCx does not compile the form.
        AssertionError: The two have integrals on different subdomains.
        NotFinite: No data were found where the form is finite.
    """
    oracle = Oracle(form, number_type(document))
    for attempt, (low, high) in enumerate([(0.3, 0.9), (0.42, 0.5), (1.1, 1.6), (-0.2, 0.2)]):
        try:
            return _compare(document, oracle, np.random.default_rng([seed, attempt]), low, high)
        except NotFinite:
            continue
    raise NotFinite("no data make the form finite")


def _compare(
    form: dict[str, Any], oracle: Oracle, rng: np.random.Generator, low: float, high: float
) -> float:
    worst = 0.0
    for kind in KINDS:
        ours = [i for i, g in enumerate(form["integrals"]) if g["type"] == kind]
        theirs = oracle.subdomains(kind)
        ids = {i for g in ours for i in (form["integrals"][g]["subdomains"] or [-1])}
        assert ids <= theirs, f"subdomains of {kind}: {ids} are not in {theirs}"
        for subdomain in sorted(theirs):
            chosen = [
                Integral(form, g) for g in ours
                if subdomain in (form["integrals"][g]["subdomains"] or [-1])
            ]  # fmt: skip
            for facets in facet_choices(form, kind, rng):
                local = random_local(rng, form, kind, facets, low, high)
                worst = max(worst, _difference(form, chosen, oracle, local, kind, subdomain))
    return worst


def _difference(
    form: dict[str, Any], ours: list[Integral], oracle: Oracle, local: Local, kind: str,
    subdomain: int,
) -> float:  # fmt: skip
    sides = 2 if kind == "interior_facet" else 1
    spaces = [form["spaces"][i] for i in form["outputs"][0]["spaces"]]
    shape = tuple(sides * space["columns"] * space["block"] for space in spaces)
    expected = oracle.tensor(kind, subdomain, local, shape)
    if not np.all(np.isfinite(expected)):
        raise NotFinite
    found, size = np.zeros(shape, oracle.scalar), np.zeros(shape)
    for integral in ours:
        found = found + integral.tensors(local)[0]
        size = size + integral.tensors(local, magnitude=True)[0]
    scale = float(np.max(np.abs(expected), initial=0.0))
    total = float(np.max(size, initial=0.0))
    if scale <= max(1e-10 * total, 1e-12):
        scale = max(total, 1.0)
    return float(np.max(np.abs(found - expected), initial=0.0)) / scale
