"""Forms on parts of processes, each with a device: a part of `test_division.py` that runs in several of them.

    mpiexec -n 2 python division_processes.py

Without MPI, pipes stand for its communicator.
"""

from __future__ import annotations

import json
from multiprocessing import get_context
from typing import Any

import numpy as np
import kingpost
import ufl

PROCESSES = 2


class Request:
    """What was sent at once."""

    def test(self) -> tuple[bool, None]:
        return True, None


class Pipes:
    """A communicator with the methods of mpi4py's that are used."""

    def __init__(self, rank: int, queues: list[list[Any]]) -> None:
        self.rank, self.size = rank, len(queues)
        self._queues = queues
        self._waiting: list[list[tuple[int, Any]]] = [[] for _ in queues]

    def isend(self, thing: Any, dest: int, tag: int = 0) -> Request:
        self._queues[dest][self.rank].put((tag, thing))
        return Request()

    def iprobe(self, source: int, tag: int = 0) -> bool:
        return True

    def recv(self, source: int, tag: int = 0) -> Any:
        waiting = self._waiting[source]
        while True:
            for place, (of, thing) in enumerate(waiting):
                if of == tag:
                    del waiting[place]
                    return thing
            waiting.append(self._queues[self.rank][source].get(timeout=120))

    def allgather(self, thing: Any) -> list[Any]:
        # a tag that calls of the engine do not have
        for peer in range(self.size):
            self.isend(thing, peer, -1)
        return [self.recv(peer, -1) for peer in range(self.size)]

    def bcast(self, thing: Any, root: int = 0) -> Any:
        return self.allgather(thing)[root]


def two_levels() -> dict[str, Any]:
    """The diagonal of the problem, and P1 on the same mesh as a coarse level."""
    from test_division import poisson

    (bilinear, u, names, fine, n), coarse = poisson(), poisson(degree=1)
    diagonal, (dofs, nodes) = np.zeros(n), (fine["p2_dofs"], fine["p1_dofs"])
    known = [{thing: name for thing, name in of.items() if name != "u"} for of in (names, coarse[2])]
    kingpost.jit(bilinear, "c", names=known[0], matrix="diagonal")(diagonal, **fine)
    matrix = kingpost.jit(coarse[0], "c", names=known[1], matrix="sparse").assemble(**coarse[3])
    rows: dict[int, dict[int, float]] = {}
    for dof, node in zip(dofs, nodes):
        corners = [{int(v): 1.0} for v in node]
        edges = [{int(node[a]): 0.5, int(node[b]): 0.5} for a, b in ((1, 2), (0, 2), (0, 1))]
        rows.update(zip(dof.tolist(), corners + edges))
    starts = np.cumsum([0] + [len(rows[k]) for k in range(n)])
    entries = [entry for k in range(n) for entry in rows[k].items()]
    P = kingpost.Csr(starts, np.array([column for column, _ in entries]), np.array([weight for _, weight in entries]))
    return {"diagonal": diagonal, "preconditioner": kingpost.CoarseSpace(matrix, P)}


def work(comm: Any, device: str = "c") -> dict[str, Any]:
    """Differences from one device, and what a failure in one process looks like in all."""
    from test_division import poisson

    bilinear, u, names, given, n = poisson()
    form = ufl.action(bilinear, u)
    one, several = (kingpost.jit(form, names=names, **how) for how in ({"device": "c"}, {"devices": [device]}))
    b = np.random.default_rng(4).standard_normal(n)
    expected, found = np.zeros(n), np.zeros(n)
    one(expected, u=b, **given)
    division = several.divide(comm=comm, u=b, **given)
    division(found)
    fixed = np.arange(5, n, 40)
    solutions = [
        each.solve(b, fixed=fixed, values=0.5, relative=1e-12, **how)
        for how in ({"method": "cg"}, {"method": "gmres"}, two_levels())
        for each in (kingpost.jit(form, devices=["c"], names=names).divide(u=b, **given), division)
    ]
    largest = abs(solutions[0].x).max()
    functional = kingpost.jit(u**2 * ufl.dx, devices=[device], names={u: "u"})
    of_mesh = {name: given[name] for name in ("x", "x_dofs", "p2_dofs")}
    total, whole = np.zeros(1), np.zeros(1)
    functional.divide(comm=comm, u=b, **of_mesh)(total)
    kingpost.jit(u**2 * ufl.dx, "c", names={u: "u"})(whole, u=b, **of_mesh)
    try:
        # one process alone has another mesh
        several.divide(comm=comm, u=b, **given, owners=np.arange(len(given["x_dofs"])) % 2 ^ comm.rank)
        refused = ""
    except kingpost.Error as error:
        refused = f"{type(error).__name__}: {error}"
    engine = division._engine
    division._engine = None if comm.rank == 0 else engine
    try:
        division(found)
        failed = ""
    except (AttributeError, kingpost.Error) as error:
        failed = f"{type(error).__name__}: {error}"
    division._engine = engine
    return {
        "exchange": division.exchange,
        "action": float(abs(found - expected).max() / abs(expected).max()),
        "solutions": [float(abs(s.x - solutions[0].x).max() / largest) for s in solutions],
        "converged": all(s.converged for s in solutions) and solutions[4].iterations == solutions[5].iterations,
        "functional": float(abs(total - whole)[0] / whole[0]),
        "refused": refused,
        "failed": failed,
    }


def in_process(rank: int, queues: list[list[Any]], results: Any, device: str) -> None:
    """A process of `all_of_them`."""
    try:
        results.put((rank, work(Pipes(rank, queues), device)))
    except BaseException as error:
        results.put((rank, {"error": repr(error)}))
        raise


def all_of_them(devices: list[str]) -> list[dict[str, Any]]:
    """The results of processes with a device each."""
    context = get_context("spawn")
    queues = [[context.Queue() for _ in devices] for _ in devices]
    results = context.Queue()
    processes = [
        context.Process(target=in_process, args=(rank, queues, results, device)) for rank, device in enumerate(devices)
    ]
    for process in processes:
        process.start()
    found = dict(results.get(timeout=300) for _ in processes)
    for process in processes:
        process.join(timeout=60)
    return [found[rank] for rank in range(len(devices))]


if __name__ == "__main__":
    from mpi4py import MPI

    everything = MPI.COMM_WORLD.gather(work(MPI.COMM_WORLD))
    if everything is not None:
        print(json.dumps(everything))
