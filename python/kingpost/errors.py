"""What can go wrong. A user's mistake, a bug of Kingpost's and a failure of the solver differ in type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Instance:
    """An instruction at one point of its loops, outer loop first."""

    statement: str
    point: tuple[int, ...]

    def __str__(self) -> str:
        values = ",".join(map(str, self.point))
        return f"{self.statement}[{values}]" if self.point else self.statement


@dataclass(frozen=True)
class Witness:
    """Two instances that clash: the first and the second in textual order, and where."""

    source: Instance
    sink: Instance
    element: str
    through: Optional[str]
    parameters: dict[str, int]

    @classmethod
    def of(cls, source, sink, element, through, parameters) -> Witness:
        """From the parts that the engine hands over."""
        first, second = (Instance(name, tuple(point)) for name, point in (source, sink))
        return cls(first, second, element, through, dict(parameters))


class Error(Exception):
    """Anything that Kingpost refuses or fails at."""


class TextError(Error, ValueError):
    """A text that is no kernel, schedule or recipe.

    ``mistakes`` has a message, a help or ``None``, line and column of each.
    """

    mistakes: list[tuple[str, Optional[str], int, int]] = []


class Refusal(Error):
    """A step that was not applied, because it is not legal or nothing proves that it is.

    ``obligation`` is the id of the condition that is not met and ``needed`` says it in words;
    ``witness`` are two instances that clash. Each is ``None`` where the reason is another.
    """

    operation: Optional[str] = None
    obligation: Optional[str] = None
    needed: Optional[str] = None
    witness: Optional[Witness] = None
    #: Line of the schedule, or number of the step, from 1, if the step came from a text.
    line: Optional[int] = None
    step: Optional[int] = None
    #: The kernel that the step met, if it came from a text.
    kernel_text: Optional[str] = None


class ScheduleError(Error, ValueError):
    """A schedule in text that cannot be applied: a hole without a value, handles for nothing."""

    line: Optional[int] = None
    kernel_text: Optional[str] = None


class CodegenError(Error):
    """A kernel that has no code for a target."""


class RaceError(CodegenError):
    """A kernel with two instances that clash; ``witness`` has them."""

    witness: Optional[Witness] = None


class StorageError(CodegenError):
    """A kernel that needs a value of a buffer to which another temporary was written; ``witness`` has two instances
    between which it was."""

    witness: Optional[Witness] = None


class OutsideError(CodegenError):
    """A kernel that accesses an element its array does not have; ``element`` is that one."""

    element: Optional[str] = None


class FormError(Error, ValueError):
    """A variational form that cannot be lowered."""


class MeshError(Error, ValueError):
    """A file or arrays that are no mesh, or a form that does not fit one."""


class ImportRefusal(Error, ValueError):
    """A program of another language that has no counterpart here.

    ``feature`` is what the language lacks, ``instruction`` the instruction that has it, if it is one.
    """

    feature: Optional[str] = None
    instruction: Optional[str] = None
    kernel_name: Optional[str] = None


class MappingError(Error, ValueError):
    """A mapping that a kernel cannot take."""


class StatisticsError(Error):
    """A kernel whose operations cannot be counted."""


class ArgumentError(Error, ValueError):
    """An argument of a call that does not fit; ``argument`` is its name."""

    argument: Optional[str] = None


class MissingArgument(ArgumentError, TypeError):
    """An argument that is not given and does not follow from the shapes of arrays."""


class UnknownArgument(ArgumentError, TypeError):
    """An argument that the kernel does not take."""


class DtypeError(ArgumentError, TypeError):
    """An array with elements of another type, or an array for a number."""


class ShapeError(ArgumentError):
    """An array of another shape."""


class LayoutError(ArgumentError):
    """An array with other strides or another alignment."""


class ReadOnlyError(ArgumentError):
    """An array that is written and may not be."""


class AliasError(ArgumentError):
    """Two arrays that overlap although one of them is written."""


class DeviceMismatchError(ArgumentError):
    """An array in memory that the device cannot reach."""


class Unavailable(Error):
    """A device or backend that this machine lacks; the message says how to get it."""


class UntrustedError(Error):
    """A kernel that holds code of a callee that Kingpost does not ship, and that nobody has allowed to run."""


class DeviceError(Error):
    """A device, its driver or its compiler that refused or failed."""


class ConvergenceError(Error):
    """A system, linear or not, whose solver did not converge where a derivative or a root was needed."""


class SolverError(Error):
    """A failure of the integer-set library."""


class InternalError(Error):
    """A bug of Kingpost's."""


class CopyWarning(UserWarning):
    """An array is copied to a device, because it lies in memory that the device cannot use."""
