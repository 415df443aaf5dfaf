"""Systems of bilinear forms of DOLFINx, solved without a matrix on the device of each process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kingpost import _kingpost
from kingpost.arrays import view
from kingpost.dolfinx.entities import Batch
from kingpost.errors import FormError
from kingpost.export import dumps
from kingpost.operator import jit
from kingpost.processes import Messages, connected, together

if TYPE_CHECKING:
    from kingpost.dolfinx.bilinear import MatrixFree

Array = Any
#: Roles of lists, which each part of an operator has for itself.
LISTS = ("entity_cells", "local_facets", "facet_states")


Solved = tuple[Array, tuple[str, bool, list[float], float]]


class _Frozen:
    """What kernels on devices have of a form until they are made again: constants and positions."""

    def __init__(self, operator: MatrixFree) -> None:
        action = operator.action
        self.comm = operator.own_comm()
        if action._mapping.document["scalar"] != "f64":
            raise FormError(f"the form is of `{action._mapping.document['scalar']}`; solving on devices takes `f64`")
        inputs = action._inputs({})
        self._constants = {name: value for name, value in inputs.items() if np.isscalar(value)}
        self._positions = action._mapping.mesh.geometry.x.copy()
        #: The functions that the kernels take, and the one that the form is applied to.
        taken = {argument.name for argument in action.operator.arguments}
        self.names = [name for name in action._mapping.functions if name in taken]
        functions = action._mapping.functions.items()
        self.unknown = next(name for name, function in functions if function is operator.argument)
        if self.unknown not in self.names:
            raise FormError("the form is zero; needed one with a solution")

    def fits(self, operator: MatrixFree) -> bool:
        """Whether constants and positions are the same, in all processes."""
        inputs = operator.action._inputs({})
        same = all(inputs[name] == value for name, value in self._constants.items())
        same &= np.array_equal(self._positions, operator.action._mapping.mesh.geometry.x)
        return all(self.comm.allgather(bool(same)))

    def values(self, operator: MatrixFree) -> dict[str, Array]:
        """The functions as they are now."""
        inputs = operator.action._inputs({})
        return {name: np.ascontiguousarray(inputs[name], "f8") for name in self.names}


class System(_Frozen):
    """What a device has of a form: kernels over the cells and facets of its process, with what does not change."""

    def __init__(self, operator: MatrixFree) -> None:
        super().__init__(operator)
        action, space = operator.action, operator.argument.function_space
        inputs = action._varying((operator._result,), {})
        late, early = action._launches(space)
        parts = {part.name: part for part in action.operator.parts}
        views, kernels = [], []
        for is_late, launches in ((True, late), (False, early)):
            for launch in (one for one in launches if one.count):
                compiled = parts[launch.part].compiled
                given = {**action._taken(launch.part, inputs), **launch.fixed}
                numbers = {name: value for name, value in given.items() if np.isscalar(value)}
                arrays = [(name, view(name, value)) for name, value in given.items() if not np.isscalar(value)]
                # they keep the arrays that the engine copies
                views.append(arrays)
                kernels.append((compiled._program, is_late, [found.lent(name) for name, found in arrays], numbers))
        fields = [values.tobytes() for values in self.values(operator).values()]
        size = operator._result.x.array.size
        part: Any = (kernels, fields, (8 * size, size, False), _layout(space), None)
        device = action.operator.parts[0].compiled.device
        self.messages, processes = Messages(None), None
        if self.comm.size > 1:
            self.messages = Messages(self.comm)
            processes = connected(self.comm, device, self.messages)
        self.engine = _kingpost.Parts([device], action._mapping.document["outputs"][0]["name"], self.names, [part], processes)

    def solve(
        self, operator: MatrixFree, system: tuple[Array, Array, Array], method: str, limits: tuple[float, float, int]
    ) -> Solved:
        """The owned unknowns, for a right-hand side, the constrained unknowns, and the inverse of a diagonal."""
        changed = [(place, values.tobytes()) for place, values in enumerate(self.values(operator).values())]
        given = tuple(array.tobytes() for array in system)

        def call() -> tuple[list[bytearray], tuple[str, bool, list[float], float]]:
            self.engine.update([changed])
            found, report, _ = self.engine.solve(self.names.index(self.unknown), [given], method, limits)
            return found, report

        self.messages.begin()
        (found,), report = together(self.comm, call)
        return np.frombuffer(found, "f8"), report


class DividedSystem(_Frozen):
    """A form on several devices of one process."""

    def __init__(self, operator: MatrixFree, devices: Sequence[str], owners: Any) -> None:
        super().__init__(operator)
        if self.comm.size > 1:
            raise FormError(f"the mesh is on {self.comm.size} processes, each with one device; leave `devices` out")
        action = operator.action
        document, several = action._mapping.document, len(action.operator.parts) > 1
        given, roles = {**action._inputs({})}, action._roles
        taken = {argument.name for argument in action.operator.arguments} | {launch.part for launch in action._all}
        # in the order of DOLFINx, whatever order launches take cells in: lists of facets have its numbers
        for name in taken & roles.keys():
            if roles[name].kind in ("map", "states"):
                given[name] = action._mapping.fixed(roles[name], Batch(slice(None), {}, 0))
        for launch in action._all:
            lists = {name: value for name, value in launch.fixed.items() if name in roles and roles[name].kind in LISTS}
            given.update({launch.part: lists} if several and lists else lists)
        width = action._mapping.mesh.geometry.x.shape[1]
        divided = jit(dumps(document), devices=devices, position_width=width)
        self.division = divided.divide(owners, all_devices=True, **{name: value for name, value in given.items() if name in taken})

    def solve(
        self, operator: MatrixFree, system: tuple[Array, Array, Array], method: str, limits: tuple[float, float, int]
    ) -> Solved:
        """As :meth:`System.solve`."""
        right, fixed, inverse = system
        values = self.values(operator)
        self.division.update(**values)
        shape = values[self.unknown].shape
        relative, absolute, most = limits
        found = self.division.solve(
            right.reshape(shape), self.unknown, fixed=fixed, diagonal=1.0 / inverse.reshape(shape),
            method=method, relative=relative, absolute=absolute, max_iterations=most,
        )  # fmt: skip
        x = found.x.reshape(-1)
        # columns of constrained unknowns are zero: nothing is lifted
        x[fixed] = right[fixed]
        return x, (found.reason, found.converged, found.residuals, found.seconds)


def _layout(space: Any) -> tuple:
    """The unknowns of a process: what it owns comes first in DOLFINx, and then ghosts, here by their owners."""
    index_map, block, comm = space.dofmap.index_map, space.dofmap.index_map_bs, space.mesh.comm
    order = np.argsort(index_map.owners, kind="stable")
    owners, ghosts = index_map.owners[order], index_map.ghosts[order]
    wanted = comm.alltoall([ghosts[owners == peer] for peer in range(comm.size)])
    spread = lambda dofs: (np.asarray(dofs)[:, None] * block + np.arange(block)).reshape(-1).astype("i4")  # noqa: E731
    receives, first = [], 0
    for peer in range(comm.size):
        count = int((owners == peer).sum()) * block
        if count:
            receives.append((peer, first, first := first + count))
    start = index_map.local_range[0]
    sends = [(peer, spread(numbers - start).tobytes()) for peer, numbers in enumerate(wanted) if len(numbers)]
    owned = spread(np.arange(index_map.size_local))
    # cells are of one process each, so that what they add to ghosts is sent back
    return owned.tobytes(), spread(index_map.size_local + order).tobytes(), receives, sends, comm.size > 1
