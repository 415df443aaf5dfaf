"""The demos of FFCx and UFL: fetched as source packages into a cache folder that git ignores."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tarfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import basix.ufl
import ufl

CACHE = Path(__file__).resolve().parent / ".cache"
PACKAGES = ["fenics-ffcx==0.11.0", "fenics-ufl==2026.1.0"]


def folders() -> list[Path]:
    """The demo folders of both packages.

    Raises:
        RuntimeError: They are not in the cache and cannot be fetched.
    """
    stems = [package.replace("-", "_").replace("==", "-") for package in PACKAGES]
    found = [CACHE / stem / "demo" for stem in stems]
    if all(folder.is_dir() for folder in found):
        return found
    CACHE.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", ":all:",
               "--no-deps", "--no-build-isolation", "-d", str(CACHE), *PACKAGES]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the demos' source packages cannot be fetched: {done.stderr[-200:]}")
    for stem in stems:
        with tarfile.open(CACHE / f"{stem}.tar.gz") as archive:
            # Python before 3.11.4 has no filters
            filters = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(CACHE, **filters)
    return found


def _basix_utils() -> types.ModuleType:
    """UFL's demos make elements with classes of its tests: the same names over basix."""
    names = {
        "Lagrange": "P", "Discontinuous Lagrange": "DG", "Brezzi-Douglas-Marini": "BDM",
        "Raviart-Thomas": "RT", "Bubble": "bubble",
    }  # fmt: skip

    def plain(family: str, cell: ufl.Cell, degree: int, shape: tuple[int, ...] = ()) -> Any:
        if family == "Quadrature":
            return basix.ufl.quadrature_element(cell.cellname, shape, degree=degree)
        family = names.get(family, family)
        if family in ("P", "DG", "bubble"):
            return basix.ufl.element(family, cell.cellname, degree, shape=shape or None)
        made = basix.ufl.element(family, cell.cellname, degree)
        if made.reference_value_shape != shape:
            raise NotImplementedError(f"basix.ufl has no `{family}` of value shape {shape}")
        return made

    module = types.ModuleType("utils")
    module.FiniteElement = lambda family, cell, degree, shape, *_: plain(
        family, cell, degree, shape
    )
    module.LagrangeElement = lambda cell, degree, shape=(): plain("P", cell, degree, shape)
    module.MixedElement = lambda parts: basix.ufl.mixed_element(
        [basix.ufl.mixed_element(p) if isinstance(p, list) else p for p in parts]
    )
    return module


def load(path: Path) -> types.ModuleType:
    """Runs a demo."""
    sys.modules["utils"] = _basix_utils()
    spec = importlib.util.spec_from_file_location(f"demo_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["utils"]
    return module


def forms_of(module: types.ModuleType) -> dict[str, Any]:
    """Every form of a demo by name, each once."""
    found: dict[str, Any] = {}
    for name, value in vars(module).items():
        items = value if isinstance(value, list | tuple) else [value]
        for i, item in enumerate(items):
            if isinstance(item, ufl.Form) and not any(item is known for known in found.values()):
                found[name if items[0] is value else f"{name}[{i}]"] = item
    return found


def paths() -> Iterator[tuple[str, Path]]:
    """(package, file) of all demos."""
    for folder in folders():
        package = folder.parent.name.split("-")[0].removeprefix("fenics_")
        for path in sorted(folder.glob("*.py")):
            if path.stem != "test_demos":
                yield package, path
