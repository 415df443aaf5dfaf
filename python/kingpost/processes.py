"""Parts of other processes, each of which has a device, by a communicator as that of mpi4py."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any, Optional, TypeVar

from kingpost import _kingpost
from kingpost.errors import ArgumentError, DeviceError

Result = TypeVar("Result")

#: Tags that follow each other; MPI has at least twice as many.
TAGS = 1 << 14


class Messages:
    """Numbers from process to process; the engine calls it."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._under_way: list[Any] = []
        self._turn = 0

    def begin(self) -> None:
        """Another call: what an earlier one that failed has left is not taken for its numbers."""
        self._turn = (self._turn + 1) % TAGS

    def send(self, peer: int, numbers: Optional[bytes]) -> None:
        """Sends without waiting for the other process."""
        self._under_way = [request for request in self._under_way if not request.test()[0]]
        self._under_way.append(self._comm.isend(numbers, dest=peer, tag=self._turn))

    def receive(self, peer: int) -> Optional[bytes]:
        """What the other process sent next; nothing if its call has failed."""
        # MPI spins while it waits, and on busy machines keeps the other process from its processor
        while not self._comm.iprobe(source=peer, tag=self._turn):
            time.sleep(0)
        return self._comm.recv(source=peer, tag=self._turn)

    def abandon(self) -> None:
        """Lets the other processes know that this call has failed."""
        for peer in range(self._comm.size):
            if peer != self._comm.rank:
                self.send(peer, None)


def together(comm: Any, call: Callable[[], Result]) -> Result:
    """What a call gives this process, if it fails in no other one."""
    try:
        own, error = call(), None
    except Exception as failed:  # noqa: BLE001 - the other processes have to hear of any
        own, error = None, failed
    failures = comm.allgather(error is not None)
    if own is None:
        assert error is not None
        raise error
    if True in failures:
        raise DeviceError(f"process {failures.index(True)} failed; its own error says why")
    return own


def check(comm: Any, n_devices: int) -> None:
    """Refuses what is no communicator, and several devices of a process."""
    needed = ("rank", "size", "isend", "iprobe", "recv", "bcast", "allgather")
    if missing := [name for name in needed if not hasattr(comm, name)]:
        kind = type(comm).__name__
        raise ArgumentError(f"`comm` is a {kind} without `{missing[0]}`; needed a communicator, as `mpi4py.MPI.COMM_WORLD`")
    if n_devices != 1:
        raise ArgumentError(f"`comm` has {comm.size} processes, and `devices` {n_devices} devices; needed one a process")


def connected(comm: Any, device: str, messages: Messages) -> tuple[int, int, Any, Optional[bytes]]:
    """What the engine gets of the processes: NCCL's id where each has a card of its own."""
    cards = comm.allgather((socket.gethostname(), device))
    by_nccl = len(cards) > 1 and len(set(cards)) == len(cards) and all(name.startswith("cuda") for _, name in cards)
    identity = None
    if by_nccl:
        identity = comm.bcast(_kingpost.nccl_id() if comm.rank == 0 else None, root=0)
    return comm.rank, comm.size, messages, identity
