"""Arguments that are records: an array of structures, or a mapping with an array for each field."""

from __future__ import annotations

from typing import Any, Mapping, NoReturn

from kingpost.errors import ArgumentError, LayoutError, ReadOnlyError


class Fields:
    """Arguments with those of records as their fields: ``best`` as ``best_value`` and ``best_at``.

    A field of an array of structures lies apart in memory, so that it is copied, and
    :meth:`put_back` writes the copies of results back. A mapping has arrays of its own.
    """

    def __init__(self, given: Mapping[str, Any], arguments: Mapping[str, bool]) -> None:
        """``arguments`` are those of the program, with whether it writes them."""
        self.given: dict[str, Any] = {}
        self._arguments = arguments
        self._copies: list[tuple[str, Any, str, Any]] = []
        for name, value in given.items():
            fields = None if name in arguments else _fields(value)
            if fields is None:
                self.given[name] = value
                continue
            for field in fields:
                part = value[field]
                if not isinstance(value, Mapping) and hasattr(part, "flags") and not part.flags.c_contiguous:
                    if self._is_written(name, field) and not part.flags.writeable:
                        _refuse(ReadOnlyError, name, "is read-only, and the kernel writes it; give a copy")
                    part = part.copy(order="K")
                    self._copies.append((name, value, field, part))
                self.given[f"{name}_{field}"] = part

    def _is_written(self, name: str, field: str) -> bool:
        return self._arguments.get(f"{name}_{field}", False)

    def put_back(self) -> None:
        """Writes the copies of results back to where they are from."""
        for name, value, field, part in self._copies:
            if self._is_written(name, field):
                value[field] = part

    def has_copies(self) -> bool:
        """Whether fields are copied."""
        return bool(self._copies)

    def refuse_copies(self) -> None:
        """Refuses arrays of structures, for what must not be copied."""
        if self.has_copies():
            message = "is an array of structures, whose fields a call copies, needed an array for each field to bind"
            _refuse(LayoutError, self._copies[0][0], f"{message}; give a mapping of them")


def _refuse(kind: type[ArgumentError], name: str, what: str) -> NoReturn:
    error = kind(f"argument `{name}` {what}")
    error.argument = name
    raise error


def _fields(value: Any) -> Any:
    """The names of the fields of a value, if it has any."""
    if isinstance(value, Mapping):
        return tuple(value)
    return getattr(getattr(value, "dtype", None), "names", None)
