"""Actions of DOLFINx forms on DOLFINx's own arrays.

Nothing of DOLFINx is imported: meshes, spaces and functions are taken by their attributes
(``dofmap.list``, ``geometry.dofmap``, ``geometry.x``, ``x.array``).
"""

from __future__ import annotations

from typing import Any, Optional

from purlin.operator import Operator, jit
from purlin.spaces import arguments


class _Adapter:
    def coordinates(self, mesh: Any) -> Any:
        return mesh.geometry.x  # three components also in two dimensions

    def coordinate_map(self, mesh: Any) -> Any:
        return mesh.geometry.dofmap[: _owned(mesh)]

    def map(self, space: Any) -> Any:
        return space.dofmap.list[: _owned(space.mesh)]

    def values(self, function: Any, block: int) -> Any:
        array = function.x.array  # owned entries, then ghosts
        return array if block == 1 else array.reshape(-1, block)


def _owned(mesh: Any) -> int:
    return mesh.topology.index_map(mesh.topology.dim).size_local


class Action:
    """The action of a linear form over cells: adds to the array of a function.

    Only owned cells run; entries of ghosts are added to, and are the caller's to send.
    """

    def __init__(self, form: Any, device: str = "c", **options: Any) -> None:
        from purlin.export import dumps, export_form

        coefficients, constants = form.coefficients(), form.constants()
        self._functions = {f"w{k}": function for k, function in enumerate(coefficients)}
        self._constants = {f"c{k}": constant for k, constant in enumerate(constants)}
        names = {id(value): name for name, value in [*self._functions.items(), *self._constants.items()]}
        self._document = export_form(form, names=names)
        (argument,) = form.arguments()
        self._test = argument.ufl_function_space()
        self.operator: Operator = jit(dumps(self._document), device, position_width=3, **options)

    def __call__(self, y: Any, stream: Optional[Any] = None) -> None:
        """Adds the action to ``y``, a function or its array."""
        array = y.x.array if hasattr(y, "x") else y
        (output,) = self._document["outputs"]
        block = self._document["spaces"][output["spaces"][0]]["block"]
        array = array if block == 1 else array.reshape(-1, block)
        given = arguments(self._document, self._test.mesh, self._functions, self._test, _Adapter())
        for name, constant in self._constants.items():
            values = constant.value.reshape(-1)
            known = {a.name for a in self.operator.arguments}
            given |= {name: values[0]} if name in known else {f"{name}_{k}": v for k, v in enumerate(values)}
        known = {a.name for a in self.operator.arguments}
        self.operator(array, stream=stream, **{k: v for k, v in given.items() if k in known})


def action(form: Any, device: str = "c", **options: Any) -> Action:
    """Compiles the action of a linear form of DOLFINx's functions."""
    return Action(form, device, **options)
