"""Kingpost: variational forms and loop programs to CUDA, HIP, OpenCL and C.

A :class:`Kernel` is a loop program. A :class:`Schedule` transforms it by steps, each of which is
proved legal before it is applied. :func:`compile` makes a function on arrays of it, and
:func:`jit` does the same with a variational form.

>>> import kingpost
>>> kernel = kingpost.Kernel.parse('''
... kernel scale
... param n: i32
... arg y: f64[n] inout
...
... for i in 0..n
...   s: y[i] = 2.0*y[i]
... ''')
>>> s = kingpost.Schedule(kernel)
>>> block, item = s.split("i", 128)
>>> s.tag(block, "g.0")
>>> s.tag(item, "l.0")
>>> print(s.recipe, end="")
split_iname(i, factor: 128)
tag(i_o, tag: g.0)
tag(i_i, tag: l.0)
"""

from kingpost import _environment
from kingpost._kingpost import BoundCall, CountFormula, Kernel, __version__
from kingpost._kingpost import forms as _forms
from kingpost.auto import AutoSchedule, ScheduleTrial, auto
from kingpost.capture import capture
from kingpost.checks import checked
from kingpost.coarse import CoarseSpace
from kingpost.compiled import Argument, Compiled, Roofline, compile, devices, source
from kingpost.choice import Choice
from kingpost.divided import DividedOperator
from kingpost.divided_matrix import DividedMatrix
from kingpost.division import Division
from kingpost.errors import (
    AliasError,
    ArgumentError,
    CodegenError,
    ConvergenceError,
    CopyWarning,
    DeviceError,
    DeviceMismatchError,
    DtypeError,
    Error,
    FormError,
    ImportRefusal,
    InternalError,
    LayoutError,
    MappingError,
    MeshError,
    MissingArgument,
    OutsideError,
    RaceError,
    ReadOnlyError,
    Refusal,
    ScheduleError,
    ShapeError,
    SolverError,
    StorageError,
    TextError,
    Unavailable,
    UnknownArgument,
    UntrustedError,
    Witness,
)
from kingpost.generic import Generic, generic
from kingpost.imports import from_loopy, prove_loopy
from kingpost.numbering import number_by_dimension, order_cells
from kingpost.operator import Operator, Part, jit
from kingpost.partition import partition
from kingpost.programs import (
    Fused,
    Statistics,
    fuse_kernels,
    remove_unused_arguments,
    rename_arguments,
    statistics,
    to_batched,
)
from kingpost.schedule import Made, Primitive, Schedule, Step, primitives
from kingpost.solvers import NewtonSolution, Solution, newton, solve
from kingpost.sparse import Csr, Pattern
from kingpost.tuning import Trial, Trials

_environment.search()


def forms():
    """The names of the forms that :func:`jit` knows without UFL."""
    return _forms()


__all__ = [
    "AliasError",
    "Argument",
    "ArgumentError",
    "AutoSchedule",
    "BoundCall",
    "Choice",
    "CoarseSpace",
    "CodegenError",
    "Compiled",
    "ConvergenceError",
    "CopyWarning",
    "CountFormula",
    "Csr",
    "DeviceError",
    "DeviceMismatchError",
    "DividedMatrix",
    "DividedOperator",
    "Division",
    "DtypeError",
    "Error",
    "FormError",
    "Fused",
    "Generic",
    "ImportRefusal",
    "InternalError",
    "Kernel",
    "LayoutError",
    "Made",
    "MappingError",
    "MeshError",
    "MissingArgument",
    "NewtonSolution",
    "Operator",
    "OutsideError",
    "Part",
    "Pattern",
    "Primitive",
    "RaceError",
    "ReadOnlyError",
    "Refusal",
    "Roofline",
    "Schedule",
    "ScheduleError",
    "ScheduleTrial",
    "ShapeError",
    "Solution",
    "SolverError",
    "StorageError",
    "Statistics",
    "Step",
    "TextError",
    "Trial",
    "Trials",
    "Unavailable",
    "UnknownArgument",
    "UntrustedError",
    "Witness",
    "__version__",
    "auto",
    "capture",
    "checked",
    "compile",
    "devices",
    "forms",
    "from_loopy",
    "fuse_kernels",
    "generic",
    "jit",
    "newton",
    "number_by_dimension",
    "order_cells",
    "partition",
    "primitives",
    "prove_loopy",
    "remove_unused_arguments",
    "rename_arguments",
    "solve",
    "source",
    "statistics",
    "to_batched",
]
