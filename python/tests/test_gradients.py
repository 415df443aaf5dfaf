"""Derivatives of all demos that have coefficients against Taylor's formula: Jacobian-vector products, and
vector-Jacobian products against those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import LONG

jax = pytest.importorskip("jax", reason="skipped: JAX is not installed (pip install jax)")
ufl = pytest.importorskip("ufl")

import demos  # noqa: E402
import engine  # noqa: E402
import kingpost  # noqa: E402
import kingpost.jax  # noqa: E402
from kingpost.export import export_form  # noqa: E402
from write_samples import space_elements  # noqa: E402

from meshes import bind, make_mesh  # noqa: E402

jax.config.update("jax_enable_x64", True)

#: Of coefficients and constants, the later ones larger: forms with logarithms and inverse functions take some alone.
RANGES = ((0.3, 0.9), (0.3, 0.5), (1.1, 1.6))
#: The first of three steps, each half of the one before. Of a wrong derivative the order is 1 for all of them; exponential
#: laws are of second order for small steps alone.
STEPS = (1e-2, 1e-3, 1e-4)

# Demos that are not loaded, or not exported: `results/ufl_forms.md` has the reasons.
LEFT_OUT = ("HarmonicMap", "MixedElasticity", "ComplexPoisson", "Equation", "StokesEquation")


def forms() -> dict[str, Any]:
    """The forms with coefficients or constants by title; a bilinear one as its action on a new coefficient."""
    found = {}
    for package, path in demos.paths():
        if path.stem in LEFT_OUT:
            continue
        for name, form in demos.forms_of(demos.load(path)).items():
            if not (form.coefficients() or form.constants()):
                continue
            if len(form.arguments()) == 2:
                form = ufl.action(form)
            found[f"{package}/{path.stem} {name}"] = form
    return found


def arguments(document: Any, form: Any, parts: Any) -> tuple[dict[str, tuple[int, ...]], dict[str, Any]]:
    """The shapes of coefficients and constants, and what a call takes besides, on a small random mesh."""
    rng = np.random.default_rng(1)
    counts = (2, 1, 1) if document["cell"] == "hexahedron" else None
    mesh = bind(document, make_mesh(document["cell"], rng, counts, document["gdim"]), space_elements(form), rng)
    rest = engine.given(document, mesh)
    shapes = {entry["name"]: rest.pop(entry["name"]).shape for entry in document["functions"][1:]}
    for entry in document["constants"]:
        shapes[entry["name"]] = tuple(entry["shape"])
        for own in [entry["name"]] if not entry["shape"] else [f"{entry['name']}_{k}" for k in range(np.prod(entry["shape"]))]:
            del rest[own]
    (output,) = document["outputs"]
    for space in output["spaces"]:
        of = document["spaces"][space]
        shape = (int(mesh.maps[space].max()) + 1, of["block"])
        rest["y"] = np.zeros(shape if of["block"] > 1 else shape[0])
    return shapes, rest | {part.name: engine.listed(document, mesh, part)[0] for part in parts}


def taylor(title: str, form: Any) -> str:
    """Checks the derivatives along a random direction of all coefficients and constants; what is wrong."""
    f = kingpost.jax.function(form)
    shapes, rest = arguments(export_form(form, outputs=["y"]), form, f.function.operator("c", "f64").parts)
    of = jax.jit(lambda values: f(**values, **rest))
    rng = np.random.default_rng(2)
    for low, high in RANGES:
        step = (high - low) / len(shapes)
        values = {name: low + step * (k + rng.uniform(0, 1, shape)) for k, (name, shape) in enumerate(shapes.items())}
        direction = {name: step * rng.uniform(-1, 1, shape) for name, shape in shapes.items()}
        value, slope = jax.jvp(of, (values,), (direction,))
        if np.isfinite(value).all() and np.isfinite(slope).all():
            break
    moved = lambda h: of({name: values[name] + h * direction[name] for name in values})  # noqa: E731
    scale = float(np.linalg.norm(value)) + float(np.linalg.norm(slope))
    orders = []
    for step in STEPS:
        remainders = [float(np.linalg.norm(moved(h) - value - h * slope)) for h in (step, step / 2, step / 4)]
        # a form that is linear in all leaves rounding alone
        rounded = max(remainders) <= 1e-13 * scale
        orders.append(2.0 if rounded else min(np.log2(np.array(remainders[:-1]) / remainders[1:])))
        if orders[-1] > 1.9:
            break
    weights = rng.uniform(-1, 1, value.shape)
    (gradient,) = jax.vjp(of, values)[1](weights)
    forward = float((weights * slope).sum())
    backward = sum(float((gradient[name] * direction[name]).sum()) for name in values)
    size = float(abs(weights * slope).sum()) + sum(float(abs(gradient[n] * direction[n]).sum()) for n in values)
    # sums of some thousand products in f64
    apart = abs(forward - backward) / max(size, 1e-300)
    return "" if orders[-1] > 1.9 and apart <= 1e-11 else f"{title}: orders {orders}, products differ by {apart:.1e}"


@pytest.mark.parametrize("first", range(4))
def test_demos(first: int) -> None:
    """All of them; without `KINGPOST_TEST_ALL` some."""
    try:
        chosen = list(forms().items())[12 * first :: 48] if not LONG else list(forms().items())[first::4]
    except RuntimeError as error:
        pytest.skip(f"skipped: {error}")
    wrong, checked = [], 0
    for title, form in chosen:
        try:
            found = taylor(title, form)
        except Exception as error:
            raise AssertionError(title) from error
        wrong += [found] if found else []
        checked += 1
    assert not wrong, wrong
    assert checked >= (15 if LONG else 1), checked
