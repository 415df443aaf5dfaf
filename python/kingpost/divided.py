"""Forms compiled for several devices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Optional

from kingpost import _kingpost
from kingpost.arrays import _about
from kingpost.choice import Choice, choose, exchange_costs
from kingpost.compiled import Argument
from kingpost.divided_matrix import DividedMatrix
from kingpost.division import Division, Owners
from kingpost.errors import ArgumentError, DeviceError, FormError
from kingpost.operator import Operator, jit
from kingpost.spaces import Json
from kingpost.sparse import Csr


def on_devices(text: str, device: str, names: Sequence[str], options: dict[str, Any]) -> DividedOperator:
    """A form in JSON, or one by name, for several devices, with the options of :func:`kingpost.jit`."""
    if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
        raise _about(ArgumentError, "devices", f"`devices` is {names!r}; needed a list of names, as of `kingpost.devices()`")
    if device != "default":
        raise _about(ArgumentError, "device", f"`device` is {device!r}, and `devices` has others; leave one of both out")
    if not text.lstrip().startswith("{"):
        text = _kingpost.form_json(text, options["dim"], options["degree"])
    document = json.loads(text)
    for function in document["functions"]:
        # as kernels call it
        function["name"] = function.get("argument", function["name"])
    results = document["outputs"]
    if len(results) != 1:
        found = ", ".join(f"`{one['name']}`" for one in results)
        message = f"the form has the results {found}; several devices take one: compile the forms one by one"
        raise FormError(f"{message}, and divide the mesh once by `divide(like=division)`")
    if document["rank"] == 2 and options["matrix"] == "cells":
        message = "the form is bilinear; several devices take its action on a function, `ufl.action(form, u)`"
        raise FormError(f'{message}, `matrix="sparse"` or `matrix="diagonal"`')
    if options["vector"] != "assembled" or options["cell_values"]:
        raise FormError("vectors of cells are for one device; several take those of the mesh: leave `vector` and `cell_values` out")
    # kernels of several devices are proved and compiled side by side
    different = list(dict.fromkeys(names))
    with ThreadPoolExecutor(len(different)) as threads:
        made = dict(zip(different, threads.map(lambda name: jit(text, name, **options), different)))
    return DividedOperator([made[name] for name in names], document)


class DividedOperator:
    """A form compiled for several devices; :func:`kingpost.jit` makes it.

    ``op.divide(x=x, x_dofs=cells, ...)`` divides a mesh among them. ``op(y, x=x, ...)`` does so for one call, and
    ``op.assemble(x=x, ...)`` for one matrix of a form that was compiled with ``matrix="sparse"``.
    """

    def __init__(self, operators: Sequence[Operator], document: Json) -> None:
        #: The operator of each device.
        self.operators = tuple(operators)
        self._document = document

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What a call takes, as of :attr:`kingpost.Operator.arguments`."""
        return self.operators[0].arguments

    @property
    def is_matrix(self) -> bool:
        """Whether the result is a sparse matrix."""
        return any(part.form.matrices for part in self.operators[0].parts)

    def divide(
        # of any type: mappings of arguments have one for all
        self, owners: Owners = "bisect", comm: Any = None, *, all_devices: Any = False, overlap: Any = True,
        like: Any = None, **arguments: Any,
    ) -> Any:  # fmt: skip
        """The form on a mesh that is divided among the devices: a :class:`Division`, of a form that was compiled with
        ``matrix="sparse"`` a :class:`DividedMatrix`.

        ``arguments`` are those of a call: maps, positions, lists of facets, functions and constants of the whole mesh.
        ``owners`` is the part of each cell, i32 ``[cells]``, as any partitioner gives it; or ``"metis"``, as
        :func:`kingpost.partition`; or ``"bisect"``: cells are divided by where they are, across the longest side of
        the box around them (Berger & Bokhari 1987).

        Fewer devices are taken where they take less time: the kernels are timed once, and so are exchanges between
        the devices. :attr:`Division.choice` says how many and why. ``all_devices=True`` takes all of them, as does an
        array ``owners``.

        Cells at a cut are computed by both sides. With ``overlap=False`` each cell is computed by one, and what it
        adds to unknowns of another part is sent there: an action then exchanges twice.

        ``like`` is a division of the same mesh, whose parts and arrays are taken: arguments that both have need not be
        given again, and what is on the devices is not copied once more.

        With a communicator ``comm``, such as ``mpi4py.MPI.COMM_WORLD``, each process has one part, and calls this
        with one device and the same arrays. So it calls the division, whose results are those of the whole mesh in
        each process.

        Raises:
            ArgumentError: Arrays or options that do not fit.
            FormError: ``overlap=False`` for a matrix.
        """
        kind = DividedMatrix if self.is_matrix else Division
        given = len(self.operators)

        def on(count: int) -> Division:
            return kind(self.operators[:count], self._document, owners, arguments, comm, overlap=overlap, like=like)

        division = on(given)
        if like is not None:
            reason: Optional[str] = "those of the division `like`"
        elif comm is not None:
            reason = "one a process"
        elif not isinstance(owners, str):
            reason = "one a part of `owners`"
        elif given == 1:
            reason = "no others are given"
        else:
            reason = "all that are given, as `all_devices` says" if all_devices else None
        if reason is not None:
            division.choice = Choice(given, given, reason, {})
            return division
        division.choice = choose(division.work(), exchange_costs(tuple(one._device for one in self.operators)))
        if division.choice.taken == given:
            return division
        try:
            fewer = on(division.choice.taken)
        except DeviceError as error:
            why = f"{division.choice.taken} would take less time, and {error}"
            division.choice = replace(division.choice, taken=given, reason=why)
            return division
        fewer.choice = division.choice
        return fewer

    def assemble(self, owners: Owners = "bisect", **arguments: Any) -> Csr:
        """The form's sparse matrix on the host, of which each device assembles the rows of its part.

        Raises:
            FormError: The form was not compiled with ``matrix="sparse"``.
        """
        if not self.is_matrix:
            raise FormError('the form has no sparse matrix; give `kingpost.jit` a bilinear form and `matrix="sparse"`')
        return self.divide(owners, **arguments).assemble()

    def __call__(self, *outputs: Any, owners: Owners = "bisect", **arguments: Any) -> None:
        """Adds the form's result to an array; the mesh is divided at each call, as by :meth:`divide`."""
        name = self._document["outputs"][0]["name"]
        results = {name: arguments.pop(name)} if name in arguments else {}
        self.divide(owners, **arguments)(*outputs, **results)

    def __repr__(self) -> str:
        devices = ", ".join(one._device for one in self.operators)
        return f"<kingpost.DividedOperator on {devices}: {self.operators[0]!r}>"
