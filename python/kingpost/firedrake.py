"""Forms of Firedrake on Firedrake's own arrays.

:func:`action` compiles a functional or a linear form with integrals over cells, :func:`matrix` a bilinear one.
Degrees of freedom and positions are read where Firedrake keeps them (``dat``, ``mesh.coordinates``,
``cell_node_map()``).

    from kingpost.firedrake import action

    residual = action(F)                 # F: a linear form
    residual.assemble(b)                 # b: a Cofunction; as firedrake.assemble(F, tensor=b)

Spaces have degrees of freedom that are values at nodes: Lagrange elements of any variant on simplices,
quadrilaterals and hexahedra, continuous or not, of scalars, vectors and tensors, on one process. Neither Firedrake
nor FIAT is imported before a form needs them.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import Any, Optional

import numpy as np

from kingpost.errors import FormError
from kingpost.operator import Operator, jit
from kingpost.spaces import roles
from kingpost.tuning import Trials

Array = Any


class _OnArrays:
    """A form of Firedrake, compiled for a device; functions, constants and positions are read at each call."""

    #: The compiled operator: its source, its recipe, its mapping.
    operator: Operator

    def __init__(self, form: Any, device: str, options: dict[str, Any]) -> None:
        from kingpost.export import dumps, export_form

        self._mesh = _mesh_of(form)
        translated = _Translation(form, self._mesh)
        self._spaces, self._constants = translated.spaces, translated.constants
        self._functions = translated.functions
        names = {id(new): name for name, new in translated.named.items()}
        document = export_form(translated.form, names=names, numbering=translated.numbering)
        self.rank = document["rank"]
        self._check_rank()
        self._document, self._roles = document, roles(document)
        self.operator = jit(dumps(document), device, **options)
        self._fixed = self._maps()

    def _check_rank(self) -> None:
        raise NotImplementedError

    def _maps(self) -> dict[str, Array]:
        """The numbering of each space."""
        found, document = {}, self._document
        # the first space is that of the positions
        owners = {0: self._mesh.coordinates.function_space()}
        for entry in document["functions"]:
            if entry["name"] in self._functions:
                owners[entry["space"]] = self._functions[entry["name"]].function_space()
        for entry in document["outputs"]:
            for place, space in zip(entry["spaces"], self._spaces):
                owners.setdefault(place, space)
        for place, space in owners.items():
            values = np.asarray(space.cell_node_map().values)
            found[f"{document['spaces'][place]['name']}_dofs"] = np.ascontiguousarray(values, np.int32)
        return found

    def _inputs(self) -> dict[str, Any]:
        """The arguments of :attr:`operator` but its results, as they are now."""
        document, given = self._document, {}
        known = {a.name for a in self.operator.arguments}
        for name, role in self._roles.items():
            if name not in known:
                continue
            if role.kind == "constant":
                entry = document["constants"][role.place]["name"]
                given[name] = float(np.ravel(self._constants[entry].dat.data_ro)[role.component])
            elif role.kind == "function":
                entry = document["functions"][role.place]
                is_position = entry["role"] == "coordinates"
                function = self._mesh.coordinates if is_position else self._functions[entry["name"]]
                given[name] = function.dat.data_ro
            elif name in self._fixed:
                given[name] = self._fixed[name]
        return given


class Action(_OnArrays):
    """A functional or a linear form of Firedrake. ``action(y)`` adds to ``y``."""

    def __init__(self, form: Any, device: str = "default", **options: Any) -> None:
        super().__init__(form, device, options)

    def _check_rank(self) -> None:
        if self.rank > 1:
            raise FormError(
                "the form is bilinear, needed a functional or a linear form; use `kingpost.firedrake.matrix`, or "
                "`ufl.action(a, u)`"
            )

    def __call__(self, output: Any, *, stream: Any = None) -> None:
        """Adds to ``output``: a Cofunction or Function, or an array of its entries."""
        self.operator(stream=stream, **self.arguments(output))

    def assemble(self, output: Any) -> None:
        """Overwrites a Cofunction or Function by the assembled result."""
        if not hasattr(output, "dat"):
            raise FormError(
                f"`assemble`: found a {type(output).__name__}, needed a Cofunction or Function; call the action itself "
                "to add to an array"
            )
        output.dat.data[:] = 0
        self(output)

    def value(self) -> float:
        """The functional."""
        if self.rank != 0:
            raise FormError("the form is linear, needed a functional; use `assemble`")
        local = np.zeros(1)
        self(local)
        return local.item()

    def arguments(self, output: Any) -> dict[str, Any]:
        """All arguments of :attr:`operator` as they are now."""
        return {self._document["outputs"][0]["name"]: _written(output), **self._inputs()}

    def tune(self, output: Any, **options: Any) -> Trials:
        """Tries mappings and keeps the fastest that is right, as :meth:`kingpost.Operator.tune`."""
        return self.operator.tune(**self.arguments(output), **options)

    def __repr__(self) -> str:
        return f"<kingpost.firedrake.Action of {self.operator!r}>"


class Matrix(_OnArrays):
    """A bilinear form of Firedrake."""

    def __init__(self, form: Any, device: str = "default", **options: Any) -> None:
        super().__init__(form, device, {"matrix": "sparse", **options})
        self._patterns = self.operator.patterns(**self._fixed)

    def _check_rank(self) -> None:
        if self.rank != 2:
            raise FormError(f"the form has {self.rank} arguments, needed a test and a trial function; use `action`")

    def assemble(self) -> Any:
        """The matrix, a ``scipy.sparse.csr_array``, whose rows and columns are those of Firedrake's arrays, flat."""
        from scipy.sparse import csr_array

        found = self.operator.assemble(self._patterns, **self._inputs())
        ((_, pattern),) = self._patterns.items()
        return csr_array((found.data, found.indices, found.indptr), shape=pattern.shape)

    def __repr__(self) -> str:
        return f"<kingpost.firedrake.Matrix of {self.operator!r}>"


def matrix(form: Any, device: str = "default", **options: Any) -> Matrix:
    """Compiles a bilinear form of Firedrake with integrals over cells; boundary values are the caller's to set.

    ``options`` are those of :func:`kingpost.jit`.

    Raises:
        FormError: As :func:`action`; a form that is not bilinear.
    """
    return Matrix(form, device, **options)


def action(form: Any, device: str = "default", **options: Any) -> Action:
    """Compiles a functional or a linear form of Firedrake with integrals over cells.

    ``options`` are those of :func:`kingpost.jit`.

    Raises:
        FormError: A bilinear form, facets, several processes, a space whose degrees of freedom are no
            values at nodes.
    """
    return Action(form, device, **options)


def _written(output: Any) -> Array:
    return output.dat.data if hasattr(output, "dat") else output


def _mesh_of(form: Any) -> Any:
    domains = form.ufl_domains()
    if len(domains) != 1:
        raise FormError(f"the form has {len(domains)} meshes, needed one")
    (mesh,) = domains
    processes = getattr(getattr(mesh, "comm", None), "size", 1)
    if processes > 1:
        raise FormError(f"the mesh is on {processes} processes, needed one")
    for integral in form.integrals():
        if integral.integral_type() != "cell" or integral.subdomain_id() not in ("everywhere", "otherwise"):
            found = f"{integral.integral_type()}` on `{integral.subdomain_id()}"
            raise FormError(f"found an integral of type `{found}`, needed integrals over all cells (`dx`)")
    return mesh


class _Translation:
    """A form of Firedrake with elements of basix instead of FIAT's."""

    def __init__(self, form: Any, mesh: Any) -> None:
        import ufl
        from ufl.corealg.map_dag import map_expr_dag

        self._mesh = ufl.Mesh(element_of(mesh.coordinates.function_space().ufl_element()))
        self._new: dict[Any, Any] = {}
        self.named: dict[str, Any] = {}
        self.functions: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        self.spaces: list[Any] = []
        self._translated_spaces: list[tuple[Any, Any]] = []
        rules = _rules(self)
        self.spaces = [argument.ufl_function_space() for argument in form.arguments()]
        self.form = ufl.Form([
            integral.reconstruct(integrand=map_expr_dag(rules, integral.integrand()), domain=self._mesh)
            for integral in form.integrals()
        ])  # fmt: skip

    def numbering(self, space: Any) -> int:
        """Which of the form's spaces this is."""
        places = (k for k, (_, new) in enumerate(self._translated_spaces) if new is space)
        return next(places, -1)

    def _space(self, space: Any) -> Any:
        import ufl

        for old, new in self._translated_spaces:
            # the space of a test function is the dual of that of functions; both have one numbering
            if old is space or old == space:
                return new
        new = ufl.FunctionSpace(self._mesh, element_of(space.ufl_element()))
        self._translated_spaces.append((space, new))
        return new

    def function(self, old: Any) -> Any:
        """A coefficient of the translated form."""
        import ufl

        if old not in self._new:
            name = f"w{len(self.functions)}"
            self._new[old] = self.named[name] = ufl.Coefficient(self._space(old.function_space()))
            self.functions[name] = old
        return self._new[old]

    def constant(self, old: Any) -> Any:
        """A constant of the translated form."""
        import ufl

        if old not in self._new:
            name = f"c{len(self.constants)}"
            self._new[old] = self.named[name] = ufl.Constant(self._mesh, shape=old.ufl_shape)
            self.constants[name] = old
        return self._new[old]

    def argument(self, old: Any) -> Any:
        """An argument of the translated form."""
        import ufl

        return ufl.Argument(self._space(old.ufl_function_space()), old.number(), old.part())

    def geometry(self, old: Any) -> Any:
        """A quantity of the mesh."""
        return type(old)(self._mesh)


def _rules(translation: _Translation) -> Any:
    """What becomes of the terminals of a form."""
    from ufl.corealg.multifunction import MultiFunction

    class Rules(MultiFunction):
        def expr(self, o: Any, *operands: Any) -> Any:
            return self.reuse_if_untouched(o, *operands)

        def terminal(self, o: Any) -> Any:
            # constants of Firedrake are constant values that keep their numbers
            return translation.constant(o) if hasattr(o, "dat") else o

        def coefficient(self, o: Any) -> Any:
            return translation.function(o)

        def constant(self, o: Any) -> Any:
            return translation.constant(o)

        def argument(self, o: Any) -> Any:
            return translation.argument(o)

        def geometric_quantity(self, o: Any) -> Any:
            return translation.geometry(o)

    return Rules()


@lru_cache(maxsize=128)
def element_of(element: Any) -> Any:
    """The element of basix with the nodes of one of FIAT, in its order.

    Its degrees of freedom all belong to the cell: numberings say what cells share.

    Raises:
        FormError: Degrees of freedom that are no values at nodes, cells that are neither simplices nor
            quadrilaterals or hexahedra.
    """
    import basix.ufl
    import ufl

    if isinstance(element, basix.ufl._ElementBase):
        return element
    scalar, shape = element, tuple(element.reference_value_shape)
    while type(scalar).__name__ in ("VectorElement", "TensorElement"):
        scalar = scalar.sub_elements[0]
    cell, degree = str(scalar.cell), scalar.embedded_superdegree
    # a symmetric tensor has fewer components than entries
    is_plain = not scalar.sub_elements and scalar.reference_value_shape == ()
    is_plain = is_plain and not getattr(element, "symmetry", dict)() and cell in _TOTAL_DEGREE
    points = points_of(scalar) if is_plain else None
    if points is not None and not _TOTAL_DEGREE[cell]:
        degree = round(len(points) ** (1 / points.shape[1])) - 1
    if points is None or len(points) != _dimension(cell, degree):
        raise FormError(
            f"found `{element}`, needed a Lagrange element on simplices, quadrilaterals or hexahedra, whose degrees of "
            "freedom are values at nodes"
        )
    points = np.ascontiguousarray(points)
    tdim, count = points.shape[1], [len(e) for e in basix.topology(basix.CellType[cell])]
    places = [[np.zeros((0, tdim))] * n for n in count[:-1]] + [[points]]
    values: list[list[np.ndarray]] = [[np.zeros((0, 1, 0, 1))] * n for n in count[:-1]] + [[np.eye(len(points))[:, None, :, None]]]
    is_continuous = element in ufl.H1
    plain = basix.ufl.custom_element(
        basix.CellType[cell], (), np.eye(len(points)), places, values, 0, basix.MapType.identity,
        basix.SobolevSpace.H1 if is_continuous else basix.SobolevSpace.L2, not is_continuous, degree, degree,
    )  # fmt: skip
    return basix.ufl.blocked_element(plain, shape=shape) if shape else plain


#: Cells by whether degrees of polynomials are total ones, or those along each axis.
_TOTAL_DEGREE = {"interval": True, "triangle": True, "tetrahedron": True, "quadrilateral": False, "hexahedron": False}


def _dimension(cell: str, degree: int) -> int:
    """The number of polynomials of a degree on a cell."""
    tdim = {"interval": 1, "triangle": 2, "tetrahedron": 3, "quadrilateral": 2, "hexahedron": 3}[cell]
    return comb(degree + tdim, tdim) if _TOTAL_DEGREE[cell] else (degree + 1) ** tdim


def points_of(element: Any) -> Optional[Array]:
    """Nodes of a scalar element of FIAT in its order [dofs, tdim]; none if they are no points."""
    from finat.element_factory import create_element

    return _nodes(create_element(element))


def _nodes(element: Any) -> Optional[Array]:
    """Nodes of an element of FInAT; those of products have the last axis fastest."""
    element = getattr(element, "product", element)
    if hasattr(element, "factors"):
        lines = [_nodes(factor) for factor in element.factors]
        if any(line is None or line.shape[1] > 1 for line in lines):
            return None
        grid = np.meshgrid(*(line[:, 0] for line in lines if line is not None), indexing="ij")
        return np.stack([axis.reshape(-1) for axis in grid], axis=1)
    points = []
    for functional in element.fiat_equivalent.dual_basis():
        found = functional.get_point_dict()
        if len(found) != 1:
            return None
        ((point, terms),) = found.items()
        if len(terms) != 1 or tuple(terms[0]) != (1.0, ()):
            return None
        points.append([float(x) for x in point])
    return np.array(points)
