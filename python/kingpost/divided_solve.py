"""Systems of forms on divided meshes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from kingpost.arrays import _about
from kingpost.coarse import polynomials
from kingpost.errors import ArgumentError, FormError, ShapeError
from kingpost.solvers import Solution, _count, _reals, _size

if TYPE_CHECKING:
    from kingpost.division import Division

Array = Any


class System:
    """A right-hand side with prescribed unknowns, on the parts of a division."""

    def __init__(self, division: Division, b: Any, fixed: Any, values: Any) -> None:
        import numpy

        if division._space is None:
            raise FormError("the form is a functional; needed a linear form, the action of a bilinear one")
        if division._dtype.kind == "c":
            raise FormError(f"the form is of {division._dtype}; several devices solve systems of real forms")
        self._division, self._space = division, division._space
        right = vector(division, "b", b)
        #: The shape of vectors.
        self.shape = right.shape
        self.kept = numpy.zeros(right.size, bool)
        self.kept[_numbers("fixed", fixed, right.size)] = True
        given = numpy.broadcast_to(_reals(values, "values", flat=False), self.shape).reshape(-1)
        #: The prescribed values, zero elsewhere.
        self.prescribed = numpy.where(self.kept, given, 0.0)
        self._right = right.reshape(-1)
        stray = (self._right != 0.0) & ~self.kept
        for own in division._unknowns:
            stray[own] = False
        if stray.any():
            unreached = int(numpy.flatnonzero(stray)[0])
            message = f"`b` is not zero at unknown {unreached}, which no cell of the form has; needed 0, or it among `fixed`"
            raise _about(ArgumentError, "b", message)

    def parts(self, lifted: Array, others: list[bytes]) -> list[tuple[bytes, bytes, bytes]]:
        """What each part of this process gets: the right-hand side without what prescribed values add, prescribed
        unknowns, and what is given of it."""
        import numpy

        right = self._right - lifted.reshape(-1)
        right[self.kept] = self.prescribed[self.kept]
        division, systems = self._division, []
        for part, other in zip(division._own, others):
            of_mesh = division._spread(division._parts[part].dofs[self._space], self._space)
            fixed = numpy.flatnonzero(self.kept[of_mesh]).astype("i4")
            systems.append((right[division._unknowns[part]].tobytes(), fixed.tobytes(), other))
        return systems

    def solution(self, found: list[Array], report: tuple, b: Any, setup: float = 0.0) -> Solution:
        """The solution from that of each part."""
        import numpy

        x = numpy.where(self.kept, self.prescribed, 0.0)
        for own, values in zip(self._division._unknowns, found):
            x[own] = values
        if getattr(b, "dtype", None) == "float32":
            x = x.astype("f4")
        reason, converged, residuals, seconds = report
        return Solution(x.reshape(numpy.shape(b)), converged, reason, residuals, seconds, setup)


def limits_of(relative: float, absolute: float, max_iterations: int) -> tuple[float, float, int]:
    return _size("relative", relative), _size("absolute", absolute), _count("max_iterations", max_iterations)


def solve(
    division: Division, b: Any, unknown: Optional[str], fixed: Any, values: Any, diagonal: Any, method: str,
    preconditioner: Any, limits: tuple[float, float, int],
) -> Solution:  # fmt: skip
    """Without a matrix, as :meth:`Division.solve`."""
    system = System(division, b, fixed, values)
    place = _unknown(division, unknown)
    inverse = _inverse(division, diagonal, system)
    polynomial = polynomials(division, preconditioner, diagonal, system)
    lifted = _of_prescribed(division, place, system)
    others = [inverse[division._unknowns[part]].tobytes() for part in division._own]
    systems = system.parts(lifted, others)

    def call() -> tuple:
        found, report, setup = division._engine.solve(place, systems, method, limits, polynomial)
        return found, (report, setup)

    try:
        found, (report, setup) = division._all(call, "f8")
    except BaseException:
        division._coarse = None  # devices may lack it
        raise
    return system.solution(found, report, b, setup)


def _unknown(division: Division, name: Optional[str]) -> int:
    """The place of the function that a system is solved for."""
    import numpy

    assert division._space is not None
    mine = division._maps[division._space]
    own = [one for one in division.functions if numpy.array_equal(division._maps[division._space_of(one)], mine)]
    known = ", ".join(f"`{one}`" for one in own) or "none"
    if name is None and len(own) != 1:
        raise _about(ArgumentError, "unknown", f"`unknown` is not given, and functions of the result's space are {known}; name one")
    if name is not None and name not in own:
        raise _about(ArgumentError, "unknown", f"`unknown` is {name!r}; functions of the result's space are {known}")
    return division.functions.index(own[0] if name is None else name)


def vector(division: Division, name: str, value: Any) -> Array:
    """A vector of the result's space, in double precision."""
    import numpy

    assert division._space is not None
    found = _reals(value, name, flat=False)
    block = division._block(division._space)
    if found.ndim != (1 if block == 1 else 2) or len(found) < division._n or (block > 1 and found.shape[1] != block):
        needed = [division._n] if block == 1 else [division._n, block]
        raise _about(ShapeError, name, f"`{name}` has the shape {list(found.shape)}; needed {needed}")
    if not numpy.isfinite(found).all():
        raise _about(ArgumentError, name, f"`{name}` holds a number that is infinite or NaN")
    return found


def _inverse(division: Division, diagonal: Any, system: System) -> Array:
    import numpy

    if diagonal is None:
        return numpy.ones(system.kept.shape)
    found = _reals(diagonal, "diagonal", flat=False)
    if found.shape != system.shape:
        raise _about(ShapeError, "diagonal", f"`diagonal` has the shape {list(found.shape)}; needed {list(system.shape)}")
    found = numpy.where(system.kept, 1.0, found.reshape(-1))
    for own in division._unknowns:
        if not (numpy.isfinite(found[own]) & (found[own] != 0.0)).all():
            raise _about(ArgumentError, "diagonal", "`diagonal` holds 0, or a number that is infinite or NaN")
    return 1.0 / numpy.where(found == 0.0, 1.0, found)


def _of_prescribed(division: Division, place: int, system: System) -> Array:
    """The action on prescribed values; that on zero has to be zero."""
    import numpy

    name, dtype = division.functions[place], division._dtype
    before = division._values[name]
    zero, found = numpy.zeros(system.shape, dtype), numpy.zeros(system.shape, dtype)
    try:
        division(zero, **{name: numpy.zeros(before.shape, dtype)})
        if zero.any():
            raise FormError(f"the form is not zero where `{name}` is; needed an action, linear in `{name}`")
        if system.prescribed.any():
            given = numpy.zeros(before.shape, dtype)
            given.reshape(-1)[: system.prescribed.size] = system.prescribed[: given.size]
            division(found, **{name: given})
    finally:
        division._values[name] = before
        division._stale.add(name)
    return found.astype("f8")


def _numbers(name: str, value: Any, n: int) -> Array:
    import numpy

    found = numpy.asarray(value if hasattr(value, "dtype") else list(value))
    if found.size and (found.dtype.kind not in "iu" or found.ndim != 1):
        raise _about(ArgumentError, name, f"`{name}` holds {found.dtype}; needed the numbers of unknowns")
    if found.size and (found.min() < 0 or found.max() >= n):
        outside = found.min() if found.min() < 0 else found.max()
        raise _about(ArgumentError, name, f"`{name}` names unknown {outside}; needed 0 to {n - 1}")
    return found.astype("i8")
