"""FFCx as the oracle: local tensors of compiled C against the evaluator's, on random cells."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import basix
import numpy as np
from tabulated import Integral, Local

KINDS = {"cell": 0, "exterior_facet": 1, "interior_facet": 2}


@lru_cache(maxsize=1)
def cache_dir() -> str:
    """A folder for compiled forms that goes with the process."""
    return tempfile.mkdtemp(prefix="ffcx-oracle-")


def compile_forms(forms: list[Any]) -> tuple[list[Any], Any]:
    """Compiles forms with FFCx to one module; -O0, since only values are compared."""
    import ffcx.codegeneration.jit as jit

    compiled, module, _ = jit.compile_forms(
        forms, options={"scalar_type": np.float64}, cache_dir=cache_dir(),
        cffi_extra_compile_args=["-O0", "-w"], cffi_libraries=["m"],
    )  # fmt: skip
    return compiled, module.ffi


def random_points(rng: np.random.Generator, cell: str, gdim: int, nodes: np.ndarray) -> np.ndarray:
    """Nodes of a random cell of either orientation [n, gdim]: affine, then perturbed."""
    tdim = len(basix.topology(basix.CellType[cell])) - 1
    frame, _ = np.linalg.qr(rng.normal(size=(gdim, gdim)))
    scale = frame[:, :tdim] @ np.diag(rng.uniform(0.6, 1.6, tdim))
    size = 0.04 if len(nodes) > tdim + 1 else 0.1
    return nodes @ scale.T + rng.uniform(-1, 1, gdim) + rng.uniform(-size, size, (len(nodes), gdim))


@dataclass
class Sample:
    """Random data of one entity, in the layouts of both sides."""

    local: Local
    w: np.ndarray
    c: np.ndarray
    x: np.ndarray
    entity: np.ndarray
    permutation: np.ndarray


def sample(
    rng: np.random.Generator, form: dict[str, Any], kind: str, used: list[int], facets: list[int],
    low: float, high: float,
) -> Sample:  # fmt: skip
    """Random values in [low, high]; `used` are functions that FFCx reads, in its order."""
    sides = 2 if kind == "interior_facet" else 1
    cell = form["cell"]
    geometry = form["spaces"][0]
    functions: list[list[np.ndarray]] = []
    for _ in range(sides):
        values = [random_points(rng, cell, form["gdim"], np.asarray(geometry["nodes"]))]
        for entry in form["functions"][1:]:
            space = form["spaces"][entry["space"]]
            values.append(rng.uniform(low, high, (space["columns"], space["block"])))
        functions.append(values)
    constants = [rng.uniform(low, high, int(np.prod(c["shape"]))) for c in form["constants"]]
    topology = basix.topology(basix.CellType[cell])
    tdim = len(topology) - 1
    count = {1: 1, 2: 2, 3: 2 * len(topology[2][0]) if tdim == 3 else 0}[tdim]
    permutations = rng.integers(0, count, 2).tolist() if sides == 2 else [0, 0]
    w = [functions[s][i].reshape(-1) for i in used for s in range(sides)]
    padded = np.zeros((sides, len(geometry["nodes"]), 3))
    for s in range(sides):
        padded[s, :, : form["gdim"]] = functions[s][0]
    return Sample(
        Local(functions, constants, facets, permutations),
        np.concatenate([*w, np.zeros(1)]), np.concatenate([*constants, np.zeros(1)]),
        padded.reshape(-1), np.array(facets, dtype=np.int32),
        np.array(permutations, dtype=np.uint8),
    )  # fmt: skip


def ffcx_tensor(ffi: Any, integrals: list[Any], s: Sample, shape: tuple[int, ...]) -> np.ndarray:
    """Sum of FFCx's local tensors."""
    total = np.zeros(shape)
    for integral in integrals:
        a = np.zeros(max(int(np.prod(shape)), 1))
        integral.tabulate_tensor_float64(
            ffi.cast("double*", ffi.from_buffer(a)), ffi.cast("double*", ffi.from_buffer(s.w)),
            ffi.cast("double*", ffi.from_buffer(s.c)), ffi.cast("double*", ffi.from_buffer(s.x)),
            ffi.cast("int*", ffi.from_buffer(s.entity)),
            ffi.cast("uint8_t*", ffi.from_buffer(s.permutation)), ffi.NULL,
        )  # fmt: skip
        total += a.reshape(shape)
    return total


def facet_choices(form: dict[str, Any], kind: str, rng: np.random.Generator) -> list[list[int]]:
    """Every local facet; in interior facets each with a random one on the other side."""
    if kind == "cell":
        return [[0], [0]]
    n = len(basix.topology(basix.CellType[form["cell"]])[-2])
    if kind == "exterior_facet":
        return [[f] for f in range(n)]
    return [[f, int(rng.integers(0, n))] for f in range(n)] * 2


def compare(
    form: dict[str, Any], output: int, compiled: Any, ffi: Any, rng: np.random.Generator,
    low: float = 0.3, high: float = 0.9,
) -> float:  # fmt: skip
    """The largest difference of local tensors, relative to the largest entry of each.

    Raises:
        AssertionError: The two have integrals of different kinds or subdomains.
    """
    used = [1 + compiled.original_coefficient_positions[i] for i in range(compiled.num_coefficients)]
    worst = 0.0
    for kind, number in KINDS.items():
        first, last = (compiled.form_integral_offsets[number + i] for i in range(2))
        theirs: dict[int, list[Any]] = {}
        for i in range(first, last):
            theirs.setdefault(compiled.form_integral_ids[i], []).append(compiled.form_integrals[i])
        ours = [i for i, g in enumerate(form["integrals"]) if g["type"] == kind]
        ids = {i for g in ours for i in (form["integrals"][g]["subdomains"] or [-1])}
        assert ids <= set(theirs), f"subdomains of {kind}: {ids} are not in {set(theirs)}"
        for subdomain, integrals in theirs.items():
            chosen = [
                Integral(form, g) for g in ours
                if subdomain in (form["integrals"][g]["subdomains"] or [-1])
            ]  # fmt: skip
            for facets in facet_choices(form, kind, rng):
                s = sample(rng, form, kind, used, facets, low, high)
                worst = max(worst, _difference(form, output, chosen, integrals, ffi, s, kind))
    return worst


def _difference(
    form: dict[str, Any], output: int, ours: list[Integral], theirs: list[Any], ffi: Any,
    s: Sample, kind: str,
) -> float:  # fmt: skip
    sides = 2 if kind == "interior_facet" else 1
    spaces = [form["spaces"][i] for i in form["outputs"][output]["spaces"]]
    shape = tuple(sides * space["columns"] * space["block"] for space in spaces)
    expected = ffcx_tensor(ffi, theirs, s, shape)
    found = np.zeros(shape)
    for integral in ours:
        found = found + integral.tensors(s.local)[output]
    assert np.all(np.isfinite(expected)), "the oracle's tensor is not finite"
    scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
    return float(np.max(np.abs(found - expected), initial=0.0)) / scale
