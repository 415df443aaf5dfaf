"""Systems of bilinear forms of DOLFINx, solved without a matrix on the device of each process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kingpost import _kingpost
from kingpost.arrays import view
from kingpost.errors import FormError
from kingpost.processes import Messages, connected, together

if TYPE_CHECKING:
    from kingpost.dolfinx.bilinear import MatrixFree

Array = Any


class System:
    """What a device has of a form: kernels over the cells and facets of its process, with what does not change."""

    def __init__(self, operator: MatrixFree) -> None:
        action, space = operator.action, operator.argument.function_space
        document = action._mapping.document
        if document["scalar"] != "f64":
            raise FormError(f"the form is of `{document['scalar']}`; solving on devices takes `f64`")
        functions = [entry["name"] for entry in document["functions"] if entry["role"] != "coordinates"]
        inputs = action._varying((operator._result,), {})
        #: The functions that the kernels take; which of them the form is applied to.
        self.names = [name for name in functions if name in inputs]
        mine = next(name for name, function in action._mapping.functions.items() if function is operator.argument)
        self.place = self.names.index(mine)
        self._constants = {name: value for name, value in inputs.items() if np.isscalar(value)}
        self._positions = action._mapping.mesh.geometry.x.copy()
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
        fields = [np.ascontiguousarray(inputs[name], "f8").tobytes() for name in self.names]
        size = operator._result.x.array.size
        part: Any = (kernels, fields, size, _layout(space))
        device = action.operator.parts[0].compiled.device
        self.messages, processes = Messages(None), None
        #: Of its own, so that no other messages are taken for those of a solve.
        self.comm = space.mesh.comm.Dup()
        if self.comm.size > 1:
            self.messages = Messages(self.comm)
            processes = connected(self.comm, device, self.messages)
        self.engine = _kingpost.Parts([device], document["outputs"][0]["name"], self.names, [part], processes)

    def fits(self, operator: MatrixFree) -> bool:
        """Whether constants and positions are those that the kernels have."""
        inputs = operator.action._inputs({})
        same = all(inputs[name] == value for name, value in self._constants.items())
        same &= np.array_equal(self._positions, operator.action._mapping.mesh.geometry.x)
        return self.comm.allreduce(bool(same), op=_all_of())

    def solve(
        self, operator: MatrixFree, system: tuple[Array, Array, Array], method: str, limits: tuple[float, float, int]
    ) -> tuple[Array, tuple[str, bool, list[float], float]]:
        """The owned unknowns, for a right-hand side, the constrained unknowns, and the inverse of a diagonal."""
        inputs = operator.action._inputs({})
        changed = [
            (place, np.ascontiguousarray(inputs[name], "f8").tobytes()) for place, name in enumerate(self.names)
        ]
        given = tuple(array.tobytes() for array in system)

        def call() -> tuple[list[bytearray], tuple[str, bool, list[float], float]]:
            self.engine.update([changed])
            return self.engine.solve(self.place, [given], method, limits)

        self.messages.begin()
        (found,), report = together(self.comm, call)
        return np.frombuffer(found, "f8"), report


def _all_of() -> Any:
    from mpi4py import MPI

    return MPI.LAND


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
