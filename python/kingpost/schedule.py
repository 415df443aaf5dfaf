"""Schedules: steps that apply as they are asked for and return handles to what they made."""

from __future__ import annotations

import difflib
import inspect
import json
import numbers
import keyword
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Optional, Union

from kingpost import _kingpost
from kingpost._kingpost import Kernel
from kingpost.errors import Refusal
from kingpost.show import explorer, highlighted

if TYPE_CHECKING:
    from kingpost._steps import Steps
else:
    Steps = object  # the methods are made below, of the table of primitives


class Made(tuple):
    """Handles to what a step made: the names of arrays, loops, rules and statements, in this order.

    A handle is a string, and an argument of other steps; so is a ``Made`` of one thing.
    """

    arrays: tuple[str, ...]
    loops: tuple[str, ...]
    rules: tuple[str, ...]
    statements: tuple[str, ...]

    def __new__(cls, arrays=(), loops=(), rules=(), statements=()) -> Made:
        made = super().__new__(cls, (*arrays, *loops, *rules, *statements))
        made.arrays, made.loops = tuple(arrays), tuple(loops)
        made.rules, made.statements = tuple(rules), tuple(statements)
        return made


@dataclass(frozen=True)
class Primitive:
    """A row of the table of primitives."""

    name: str
    summary: str
    #: Names of the arguments in their order.
    arguments: tuple[str, ...]
    #: Whether one of the arguments is given, by its name.
    takes_one_of: bool
    #: The conditions that it proves: id, and what it says.
    obligations: dict[str, str]
    #: JSON schema of the arguments; its description is the documentation.
    schema: dict[str, Any]

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The documentation with the arguments."""
        properties = self.schema.get("properties", {})
        lines = [self.schema.get("description", self.summary), "", "Arguments:"]
        for name in self.arguments:
            about = properties.get(name, {})
            text = " ".join(str(about.get("description", "")).split())
            lines.append(f"    {name}: {text}" if text else f"    {name}")
        if self.obligations:
            lines += ["", "Proves:"]
            lines += [f"    {name}: {says}" for name, says in self.obligations.items()]
        return "\n".join(lines)

    @property
    def signature(self) -> inspect.Signature:
        """The signature of the method of :class:`Schedule`; ``from`` is called ``from_`` in Python."""
        required = set(self.schema.get("required", ()))
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        kind = inspect.Parameter.KEYWORD_ONLY if self.takes_one_of else inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters, optional = [own], False
        for name in self.arguments:
            optional = optional or self.takes_one_of or name not in required
            default = None if optional else inspect.Parameter.empty
            parameters.append(inspect.Parameter(_python_name(name), kind, default=default))
        return inspect.Signature(parameters)


@dataclass(frozen=True)
class Step:
    """A step that was applied, in words, and the kernel after it."""

    operation: str
    kernel: Kernel
    #: The laws of declared operators that it relies on, each with whether it is proved or sampled.
    laws: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"# {line}" for line in (self.operation, *self.laws)] + ["", str(self.kernel)])

    def _repr_html_(self) -> str:
        return highlighted(str(self), "kingpost")


def _python_name(argument: str) -> str:
    return f"{argument}_" if keyword.iskeyword(argument) else argument


def primitives() -> dict[str, Primitive]:
    """The table of primitives by name, in the order of the engine's."""
    return dict(_TABLE)


def _table() -> Iterator[tuple[str, Primitive]]:
    for name, summary, arguments, one_of, obligations, schema in _kingpost.primitives():
        yield name, Primitive(
            name, summary, tuple(arguments), one_of, dict(obligations), json.loads(schema)
        )


_TABLE = dict(_table())


def _others() -> Iterator[tuple[str, Primitive]]:
    for name, today, arguments in _kingpost.other_names():
        own = _TABLE[today]
        same = tuple(arguments) == own.arguments
        schema = {
            "description": f"{own.summary} Another name of :meth:`{today}`.",
            "required": own.schema.get("required", ()) if same else arguments,
        }
        yield name, Primitive(name, own.summary, tuple(arguments), False, {}, schema)


#: Verbs, and names that primitives had.
_OTHERS = dict(_others())


def _plain(value: Any) -> Any:
    """An argument as JSON has it: handles and kernels are text."""
    if isinstance(value, Made):
        return value[0] if len(value) == 1 else [_plain(v) for v in value]
    if isinstance(value, Kernel):
        return str(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, Iterable):
        return [_plain(v) for v in value]
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return value.__index__()  # integers of NumPy
    if isinstance(value, numbers.Real):
        return value if isinstance(value, bool) else float(value)
    if isinstance(value, numbers.Complex):
        return {"re": float(value.real), "im": float(value.imag)}
    return value


class Schedule(Steps):
    """A kernel under transformation, and the steps that led to it.

    Every primitive is a method: ``s.split_iname("i", 128)`` proves that the step is legal, applies
    it and returns handles to what it made. A step that is refused raises :class:`kingpost.Refusal`
    and leaves the schedule as it was. Some steps also have short names: :meth:`split`,
    :meth:`tag`, :meth:`unroll`, :meth:`prefetch` and so on. :func:`kingpost.primitives` is the table.
    """

    __slots__ = ("_engine",)

    def __init__(self, kernel: Union[Kernel, str]) -> None:
        if isinstance(kernel, str):
            kernel = Kernel.parse(kernel)
        self._engine = _kingpost.Engine(kernel)

    @classmethod
    def _of(cls, engine: _kingpost.Engine) -> Schedule:
        schedule = cls.__new__(cls)
        schedule._engine = engine
        return schedule

    @classmethod
    def parse(cls, text: str, **holes: Union[int, str]) -> Schedule:
        """A kernel and, after a line ``schedule``, its steps; ``holes`` are values for its holes."""
        return cls._of(_kingpost.Engine.parse(text, {k: str(v) for k, v in holes.items()}))

    @property
    def kernel(self) -> Kernel:
        """The kernel as it is now."""
        return self._engine.kernel()

    @property
    def start(self) -> Kernel:
        """The kernel before any step."""
        return self._engine.start()

    @property
    def recipe(self) -> str:
        """The steps as text, one a line; :meth:`run` and the command line read it."""
        return self._engine.text()

    @property
    def recipe_json(self) -> str:
        """The steps as JSON."""
        return self._engine.json()

    def steps(self) -> list[Step]:
        """Each step with the kernel after it."""
        return [Step(operation, kernel, tuple(laws)) for operation, kernel, laws in self._engine.steps()]

    def run(self, text: str, **holes: Union[int, str]) -> Schedule:
        """Applies the steps of a schedule in text, or of a recipe in JSON; all or none of them."""
        if text.lstrip().startswith("{"):
            self._engine.apply_json(text)
        else:
            self._engine.apply_text(text, {k: str(v) for k, v in holes.items()})
        return self

    def page(self) -> str:
        """What every step makes of the kernel, as one page of HTML that needs no server and no network."""
        return self._engine.page()

    def copy(self) -> Schedule:
        """An independent schedule that continues from here."""
        return self._of(self._engine.copy())

    def __copy__(self) -> Schedule:
        return self.copy()

    def __deepcopy__(self, _: Any) -> Schedule:
        return self.copy()

    def __reduce__(self) -> tuple:
        """Pickled as the kernel before any step and the recipe, which is proved again."""
        return _replayed, (self.start, self.recipe_json)

    def apply(self, step: str, /, *args: Any, **kwargs: Any) -> Made:
        """Applies the primitive of this name."""
        primitive = _TABLE.get(step) or _OTHERS.get(step)
        if primitive is None:
            near = difflib.get_close_matches(step, [*_TABLE, *_OTHERS], 1)
            hint = f"did you mean `{near[0]}`?" if near else "`kingpost.primitives()` lists them"
            raise Refusal(f"there is no step `{step}`; {hint}")
        bound = primitive.signature.bind(self, *args, **kwargs)
        names = {_python_name(name): name for name in primitive.arguments}
        given = {names[k]: _plain(v) for k, v in bound.arguments.items() if k != "self" and v is not None}
        return Made(*self._engine.apply(step, json.dumps(given)))

    def split(self, iname: str, factor: int, **more: Any) -> Made:
        """Splits a loop into blocks; returns the loop over blocks and the one inside a block."""
        return self.apply("split_iname", iname, factor, **more)

    def unroll(self, iname: str) -> None:
        """Writes out the iterations of a loop."""
        self.apply("tag", iname, "unroll")

    def vectorise(self, iname: str) -> None:
        """Runs the iterations of an innermost loop in vector lanes."""
        self.apply("tag", iname, "vector")

    def reorder(self, *order: str) -> None:
        """Nests the loops of a perfect nest in this order, outer first."""
        self._engine.reorder([_plain(iname) for iname in order])

    def tile(self, loops: Iterable[str], factors: Iterable[int], tags: Iterable[tuple[str, str]] = ()) -> Made:
        """Splits loops into blocks, and nests the loops over blocks outside: returns these, then those inside.

        ``tags`` are for the loop over blocks and the one inside, for the first loops: ``[("g.0", "l.0")]``."""
        return Made(*self._engine.tile(_plain(loops), _plain(factors), _plain(tags)))

    def tag_matching(self, pattern: str, tag: str) -> Made:
        """Tags all loops whose names a pattern says, in one step; ``*`` stands for any number of letters."""
        return Made(*self._engine.tag_matching(pattern, tag))

    def interleave(self, iname: str) -> Made:
        """Runs the iterations of a loop side by side: innermost and written out; returns its parts.

        Temporaries that the parts share get an axis for it. Loopy tags such a loop ``ilp``."""
        return Made(*self._engine.interleave(_plain(iname)))

    def prefetch(
        self, array: str, at: str, space: str = "local", tag: Union[str, Iterable[str]] = (), **more: Any
    ) -> Made:
        """Copies what an iteration of ``at`` reads of an array to a temporary.

        ``tag`` are tags of the loops that copy, outer first: ``["l.1", "l.0"]``."""
        draft = self.copy()
        made = draft.apply("prefetch_array", array, at=at, space=space, **more)
        tags = [tag] if isinstance(tag, str) else list(tag)
        if len(tags) > len(made.loops):
            raise Refusal(f"prefetch: {len(made.loops)} loops that copy and {len(tags)} tags, needed a tag for each")
        for iname, one in zip(made.loops, tags):
            draft.tag(iname, one)
        self._engine = draft._engine
        return made

    def realise(self, iname: str, accumulator: Optional[str] = None) -> Made:
        """Turns the reduction over a loop into a loop that accumulates in a temporary."""
        return self.apply("realise_reduction", iname, accumulator)

    def expand(self, array: str, *loops: str) -> Made:
        """Gives a temporary an axis for each of some loops."""
        return self.apply("expand_array", array, loops)

    def distribute(self, iname: str, *before: str) -> Made:
        """Distributes a loop over the parts of its body, which begin at the named nodes."""
        return self.apply("distribute_loop", iname, before)

    def fuse(self, first: str, second: str) -> Made:
        """Fuses two neighbouring loops; the first one's name stays."""
        return self.apply("fuse_loops", first, second)

    def __repr__(self) -> str:
        return f"<kingpost.Schedule of {self.start.name}, {len(self.recipe.splitlines())} steps>"

    def __str__(self) -> str:
        return f"{self.start}\nschedule\n{self.recipe}"

    def _repr_html_(self) -> str:
        return explorer(self) + highlighted(str(self), "kingpost")


def _method(primitive: Primitive):
    def method(self, /, *args, **kwargs):
        return self.apply(primitive.name, *args, **kwargs)

    method.__name__ = primitive.name
    method.__qualname__ = f"Schedule.{primitive.name}"
    method.__doc__ = primitive.__doc__
    setattr(method, "__signature__", primitive.signature)  # which type checkers do not know
    return method


for _primitive in [*_TABLE.values(), *_OTHERS.values()]:
    if not hasattr(Schedule, _primitive.name):
        setattr(Schedule, _primitive.name, _method(_primitive))


def _replayed(start: Kernel, recipe: str) -> Schedule:
    return Schedule(start).run(recipe)
