"""The engine's kernels of exported forms, run on small meshes and compared with the evaluator.

Meshes are perturbed, randomly numbered, and have cells of both orientations. Local matrices of
bilinear forms are added up on both sides and compared as dense matrices.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import kingpost
from oracle import NotFinite
from kingpost import _kingpost
from tabulated import Integral, Mesh, assemble, entities, gather, number_type
from write_samples import space_elements

from meshes import bind, make_mesh

Json = dict[str, Any]

# Factors of the random coefficients: some forms are finite for small values only.
SCALES = (1.0, 0.2, 0.02, -0.1)
# What an ulp of the inputs may move the results by; the limit on differences is a hundred of it.
ROUNDING = 1e-14


class Outcome(NamedTuple):
    """What a device made of a form: the relative difference, or why there is none."""

    difference: float | None
    reason: str = ""

    @property
    def text(self) -> str:
        """A cell of a table."""
        return "" if self.difference is None else f"{self.difference:.1e}"


def problem(document: Json, form: Any, seed: int) -> tuple[Mesh, list[np.ndarray]]:
    """Random data on a mesh, and the evaluator's results.

    Raises:
        NotFinite: No data were found where the form is finite and not swamped by rounding.
    """
    counts = (2, 1, 1) if document["cell"] == "hexahedron" else None
    for scale in SCALES:
        rng = np.random.default_rng(seed)
        drawn = make_mesh(document["cell"], rng, counts, document["gdim"])
        mesh = bind(document, drawn, space_elements(form), rng)
        mesh.arrays[1:] = [scale * values for values in mesh.arrays[1:]]
        with np.errstate(all="ignore"):
            results = assemble(document, mesh)
            finite = all(np.all(np.isfinite(result)) for result in results)
            if finite and rounding(document, mesh, results, rng) <= ROUNDING:
                return mesh, results
    raise NotFinite("no data were found where it is finite and well conditioned")


def rounding(
    document: Json, mesh: Mesh, results: list[np.ndarray], rng: np.random.Generator
) -> float:
    """How much the results move when every input moves by about an ulp."""
    nudge = lambda values: values * (1 + 2e-16 * rng.choice([-1, 0, 1], values.shape))  # noqa: E731
    moved = replace(
        mesh,
        arrays=[nudge(values) for values in mesh.arrays],
        constants=[nudge(values) for values in mesh.constants],
    )
    return difference(document, mesh, results, assemble(document, moved))


def magnitudes(document: Json, mesh: Mesh) -> list[float]:
    """The largest entry of local tensors of absolute values: the scale of rounding, by output."""
    worst = [0.0 for _ in document["outputs"]]
    for position in range(len(document["integrals"])):
        integral = Integral(document, position)
        for cells, facets, states in entities(integral, mesh):
            local = gather(document, mesh, cells, facets, states)
            for i, tensor in enumerate(integral.tensors(local, magnitude=True)):
                worst[i] = max(worst[i], float(np.max(tensor, initial=0.0)))
    return worst


def given(document: Json, mesh: Mesh) -> dict[str, Any]:
    """The arguments that all kernels of a form share, by name."""
    found: dict[str, Any] = {}
    for space, numbers, states in zip(document["spaces"], mesh.maps, mesh.states, strict=True):
        found[f"{space['name']}_dofs"] = numbers.astype(np.int32)
        found[f"{space['name']}_states"] = np.asarray(states, dtype=np.int32)
    for entry, values in zip(document["functions"], mesh.arrays, strict=True):
        flat = document["spaces"][entry["space"]]["block"] == 1
        found[entry["name"]] = np.ascontiguousarray(values[:, 0] if flat else values)
    for entry, values in zip(document["constants"], mesh.constants, strict=True):
        names = [entry["name"]] if not entry["shape"] else [
            f"{entry['name']}_{i}" for i in range(len(values))
        ]  # fmt: skip
        found |= dict(zip(names, values.tolist(), strict=True))
    return found


def listed(document: Json, mesh: Mesh, part: Any) -> tuple[dict[str, Any], np.ndarray]:
    """The entities of a part by the names of its arguments, and their cells [entities, sides]."""
    kind, numbers = part_of(part.name)
    if kind == "cells":
        chosen = np.concatenate([mesh.cells[i] for i in numbers]) if numbers else np.arange(mesh.n_cells)
        return {"listed_cells": chosen.astype(np.int32)}, chosen.reshape(-1, 1)
    data = mesh.facets[kind.removesuffix("s")]
    rows = [
        i for i, tag in enumerate(data["tags"])
        for _ in range(numbers.count(int(tag)) if numbers else 1)
    ]  # fmt: skip
    lists = {
        name: np.ascontiguousarray(data[name][rows], dtype=np.int32)
        for name in ("facet_cells", "local_facets", "facet_states")
    }
    return lists, lists["facet_cells"].reshape(len(rows), 2 if kind == "interior_facets" else 1)


def part_of(name: str) -> tuple[str, list[int]]:
    """`exterior_facets_1_2`: the kind of entity, and the numbers of subdomains."""
    for kind in ("cells", "exterior_facets", "interior_facets"):
        if name.startswith(kind):
            return kind, [int(n) for n in name[len(kind) :].split("_") if n]
    raise AssertionError(f"a part of an unknown kind: {name}")


def results_of(document: Json, mesh: Mesh, op: kingpost.Operator) -> list[np.ndarray]:
    """What the kernels of a form add up to, shaped as the evaluator's results."""
    results, local = launched(document, mesh, op)
    for place, output in enumerate(document["outputs"]):
        if len(output["spaces"]) == 2:
            results[place] = np.zeros([_size(document, mesh, s) for s in output["spaces"]], number_type(document))
    for of, (places, matrices) in local:
        for (rows, columns), matrix in zip(places, matrices, strict=True):
            np.add.at(results[of], np.ix_(rows, columns), matrix)
    return results


def _size(document: Json, mesh: Mesh, space: int) -> int:
    return (int(mesh.maps[space].max()) + 1) * document["spaces"][space]["block"]


def launched(
    document: Json, mesh: Mesh, op: kingpost.Operator
) -> tuple[list[np.ndarray], list[tuple[int, tuple[list[Any], np.ndarray]]]]:
    """Results that are no matrices, by output; local matrices with their output and, an entity
    each, their rows and columns."""
    shared = given(document, mesh)
    dtype = number_type(document)
    results = [
        np.zeros([_size(document, mesh, s) for s in output["spaces"]] if len(output["spaces"]) < 2 else 0, dtype)
        for output in document["outputs"]
    ]
    arrays: dict[str, Any] = {}
    local: list[tuple[int, np.ndarray, np.ndarray]] = []
    for part in op.parts:
        lists, cells = listed(document, mesh, part)
        own = {argument.name for argument in part.compiled.arguments}
        named = {name: value for name, value in lists.items() if name in own}
        for i, output in enumerate(document["outputs"]):
            if output["name"] not in own:
                continue
            if len(output["spaces"]) == 2:
                sides = 2 if part.name.startswith("interior") else 1
                shape = [sides * document["spaces"][s]["columns"] * document["spaces"][s]["block"]
                         for s in output["spaces"]]  # fmt: skip
                named[output["name"]] = np.zeros((len(cells), *shape), dtype)
                local.append((i, cells, named[output["name"]]))
            else:
                block = document["spaces"][output["spaces"][0]]["block"] if output["spaces"] else 1
                value = results[i].reshape(-1, block) if block > 1 else results[i].reshape(-1)
                arrays[output["name"]] = value
        if len(op.parts) > 1:
            arrays[part.name] = named
        else:
            arrays |= named
    known = {argument.name for argument in op.arguments}
    arrays |= {name: value for name, value in shared.items() if name in known}
    op(**arrays)
    found = []
    for i, cells, matrices in local:
        places = [
            [
                (mesh.maps[s][row][:, :, None] * document["spaces"][s]["block"]
                 + np.arange(document["spaces"][s]["block"])).reshape(-1)
                for s in document["outputs"][i]["spaces"]
            ]
            for row in cells
        ]  # fmt: skip
        found.append((i, (places, matrices)))
    return results, found


def difference(
    document: Json, mesh: Mesh, expected: list[np.ndarray], found: list[np.ndarray]
) -> float:
    """The largest difference, relative to each output's largest entry.

    Where an output cancels to rounding errors, the scale is that of the sums of absolute values.
    """
    worst, sums = 0.0, None
    for i, (theirs, ours) in enumerate(zip(expected, found, strict=True)):
        scale = float(np.max(np.abs(theirs), initial=0.0))
        if scale < 1e-3:
            sums = magnitudes(document, mesh) if sums is None else sums
            if scale <= max(1e-10 * sums[i], 1e-12):
                scale = max(sums[i], 1.0)
        worst = max(worst, float(np.max(np.abs(ours - theirs), initial=0.0)) / scale)
    return worst if np.isfinite(worst) else float("inf")


def check(document: Json, form: Any, devices: list[str], seed: int) -> dict[str, Outcome]:
    """The outcome on each device."""
    try:
        mesh, expected = problem(document, form, seed)
    except NotFinite as error:
        return {device: Outcome(None, str(error)) for device in devices}
    found = {}
    for device in devices:
        try:
            op = kingpost.Operator(kernels(json.dumps(document)), device, None)
            values = results_of(document, mesh, op)
        except kingpost.Error as error:
            found[device] = Outcome(None, f"{type(error).__name__}: {error}"[:300])
            continue
        found[device] = Outcome(difference(document, mesh, expected, values))
    return found


def kernels(text: str) -> list[Any]:
    """The kernels of a form in JSON."""
    return _kingpost.Form.json(text, None)
