"""Forms on meshes: an operator for each kind of cells, over arrays that all of them share."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, Optional, Union

import numpy as np

from kingpost.divided import DividedOperator
from kingpost.errors import FormError, MeshError
from kingpost.export import SCALARS
from kingpost.meshes.mesh import Mesh
from kingpost.meshes.across import Between, pairs
from kingpost.meshes.of_kind import OfKind, Place
from kingpost.meshes.space import Space
from kingpost.operator import Operator
from kingpost.tuning import Trials

Array = Any
#: NumPy's types by those of forms.
DTYPES = {short: name for name, short in SCALARS.items()}
#: A form of UFL, or one for each kind of cells.
FormOf = Union[Any, Callable[[str], Any]]


class _Compiled:
    """The operators of all kinds of cells."""

    def __init__(
        self, mesh: Mesh, form: FormOf, device: str, options: dict[str, Any], place: Optional[Place] = None,
        scalar: Any = "f64",
    ) -> None:  # fmt: skip
        import ufl

        if isinstance(form, ufl.Form) and len(mesh.kinds) > 1:
            raise FormError(f"found one form, needed a function of the kind of cells: {', '.join(mesh.kinds)}")
        if "devices" in options and len(mesh.kinds) > 1:
            raise FormError(f"found several devices for cells of kinds {', '.join(mesh.kinds)}; needed cells of one kind")
        made = {kind: form if isinstance(form, ufl.Form) else form(kind) for kind in mesh.kinds}
        found = {kind: one for kind, one in made.items() if one is not None}
        for kind, one in found.items():
            if not isinstance(one, ufl.Form):
                raise FormError(f"cells of kind {kind}: found a `{type(one).__name__}`, needed a form of UFL, or None")
        if not found:
            raise FormError("found no form on any kind of cells")
        self.mesh = mesh
        given = (device, place, scalar, options)
        self.of_kinds = {kind: OfKind(mesh, kind, one, *given) for kind, one in found.items()}
        self.of_kinds |= {"-".join(pair): Between(mesh, pair, one, *given) for pair, one in pairs(mesh, found).items()}
        #: The type of results, coefficients and constants.
        self.dtype = np.dtype(DTYPES[next(iter(self.of_kinds.values())).document["scalar"]])
        ranks = {kind: of.rank for kind, of in self.of_kinds.items()}
        if len(set(ranks.values())) > 1:
            raise FormError(f"found forms of ranks {ranks}, needed one")
        self.rank = next(iter(ranks.values()))
        spaces = {tuple(map(id, of.arguments)) for of in self.of_kinds.values()}
        if len(spaces) > 1:
            raise FormError("found test or trial functions of different spaces, needed `on(kind)` of one space")
        #: The spaces of the arguments, that of the test function first.
        self.spaces: Sequence[Space] = next(iter(self.of_kinds.values())).arguments

    @property
    def operators(self) -> Mapping[str, Union[Operator, DividedOperator]]:
        """The operator of each kind of cells: its source, its recipe, its mapping; `prism-hexahedron` is that of the
        facets between two."""
        return {kind: of.operator for kind, of in self.of_kinds.items()}

    @property
    def is_divided(self) -> bool:
        """Whether the form is compiled for several devices."""
        return any(isinstance(of.operator, DividedOperator) for of in self.of_kinds.values())

    def divide(self, **options: Any) -> Any:
        """The form on a mesh that is divided among devices, with functions, constants and positions as they are: a
        :class:`kingpost.Division`. ``options`` are those of :meth:`kingpost.DividedOperator.divide`, such as ``owners``.
        """
        (of,) = self.of_kinds.values()
        return of.divided(**options)


class Action(_Compiled):
    """A functional, a linear form, or the diagonal of a matrix on all kinds of cells. ``action(y)`` adds to ``y``, which
    has the shape of the test function's space (one entry of a functional)."""

    def __call__(self, y: Array) -> None:
        """Adds the result, with functions, constants and positions as they are."""
        needed = self.spaces[0].shape if self.rank else (1,)
        if np.shape(y) != needed:
            raise FormError(f"found a result of shape {np.shape(y)}, needed {needed}")
        if self.is_divided:
            self.divide()(y)
            return
        for of in self.of_kinds.values():
            name = of.document["outputs"][0]["name"]
            for part in of.present():
                part.compiled(**of.shared(part), **of.listed(part), **{name: y})

    def assemble(self) -> Array:
        """The vector of a linear form."""
        if self.rank == 0:
            raise FormError("the form is a functional, needed a linear form; use `value`")
        y = np.zeros(self.spaces[0].shape, self.dtype)
        self(y)
        return y

    def tune(self, y: Array, **options: Any) -> dict[str, Trials]:
        """Tries mappings of each kind's kernels and keeps the fastest, as :meth:`kingpost.Operator.tune`."""
        found = {}
        for kind, of in self.of_kinds.items():
            if isinstance(of.operator, DividedOperator):
                raise FormError("found a form for several devices, needed one for one device, which is tuned")
            if len(of.present()) == len(of.operator.parts):
                given = of.arguments_of(of.present()) | {of.document["outputs"][0]["name"]: y}
                found[kind] = of.operator.tune(**given, **options)
        return found

    def value(self) -> Any:
        """The functional."""
        if self.rank != 0:
            raise FormError("the form is linear, needed a functional; use `assemble`")
        y = np.zeros(1, self.dtype)
        self(y)
        return y.item()


class Matrix(_Compiled):
    """A bilinear form on all kinds of cells."""

    def assemble(self) -> Any:
        """The matrix, a ``scipy.sparse.csr_array``, with functions, constants and positions as they are.

        Rows and columns are components of degrees of freedom, ``block * number + component``.
        """
        from scipy.sparse import csr_array

        rows, columns = (space.size * space.block for space in self.spaces)
        total = csr_array((rows, columns), dtype=self.dtype)
        for of in self.of_kinds.values():
            if not (present := of.present()):
                continue
            if isinstance(of.operator, DividedOperator):
                found = of.divided().assemble()
                return csr_array((found.data, found.indices, found.indptr), shape=(rows, columns))
            operator = copy.copy(of.operator)
            operator.parts = tuple(present)
            given = of.arguments_of(present)
            # those of the matrix are no arguments of kernels, which take the places of its entries
            patterns = operator.patterns((rows, columns), **given | of.maps())
            found = operator.assemble(patterns, **given)
            total = total + csr_array((found.data, found.indices, found.indptr), shape=(rows, columns))
        return total


def action(
    mesh: Mesh, form: FormOf, device: str = "default", *, place: Optional[Place] = None, scalar: Any = "f64",
    **options: Any,
) -> Action:  # fmt: skip
    """Compiles a functional or a linear form: a form of UFL, or a function that gives one for each kind of cells.

    It is made of ``space.on(kind)``, ``function.on(kind)`` and ``constant.on(kind)``; a kind without an integral has
    None. ``scalar`` is the type of coefficients, constants and results, as of :func:`kingpost.export.export_form`;
    positions of single precision are converted. ``options`` are those of :func:`kingpost.jit`. ``place`` moves arrays that do not change between calls to the
    device once (``cupy.asarray``): maps, lists of entities, and positions, which are then those of the first call.

    Raises:
        FormError: A form that cannot be lowered, or of other spaces.
        MeshError: Integrals over interior facets that differ among kinds of cells that meet there.
    """
    found = Action(mesh, form, device, options, place, scalar)
    if found.rank > 1:
        raise FormError("the form is bilinear, needed a functional or a linear form; use `kingpost.meshes.matrix`")
    return found


def diagonal(
    mesh: Mesh, form: FormOf, device: str = "default", *, place: Optional[Place] = None, scalar: Any = "f64",
    **options: Any,
) -> Action:  # fmt: skip
    """Compiles the diagonal of a bilinear form's matrix, which is added to an array of the space's shape; arguments and
    errors as of :func:`action`.
    """
    found = Action(mesh, form, device, {"matrix": "diagonal", **options}, place, scalar)
    if found.rank != 2 or found.spaces[0] is not found.spaces[1]:
        raise FormError(f"the form has {found.rank} arguments, needed a test and a trial function of one space")
    return found


def matrix(mesh: Mesh, form: FormOf, device: str = "default", *, scalar: Any = "f64", **options: Any) -> Matrix:
    """Compiles a bilinear form; arguments and errors as of :func:`action`."""
    found = Matrix(mesh, form, device, {"matrix": "sparse", **options}, scalar=scalar)
    if found.rank != 2:
        raise FormError(f"the form has {found.rank} arguments, needed a test and a trial function; use `action`")
    return found
