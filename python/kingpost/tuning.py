"""Mappings that :meth:`kingpost.Operator.tune` found, kept for later processes.

They are lines of JSON in ``tuned.jsonl`` of the cache (``KINGPOST_CACHE_DIR``, else ``~/.cache/kingpost``): the
form by its hash, the device by its name, the sizes that it was tuned for, the mapping, seconds of a call.
:func:`kingpost.jit` takes the last one of a form on its device, unless it is given a mapping.
"""

from __future__ import annotations

import datetime
import hashlib
import html
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, Union

from kingpost import _kingpost
from kingpost.errors import ArgumentError

#: What a line has.
_KEYS = {"form", "part", "device", "sizes", "mapping", "seconds", "date", "kingpost"}


@dataclass(frozen=True)
class Trial:
    """A mapping that was tried: seconds, or why it was refused."""

    mapping: dict[str, Any]
    seconds: Optional[float]
    reason: Optional[str]
    #: The mapping in words; those of :attr:`mapping` where it was refused.
    words: str = ""


class Trials(list):
    """All trials of a search; in notebooks a picture, the fastest first."""

    def _repr_html_(self) -> str:
        timed = sorted((t for t in self if t.seconds is not None), key=lambda t: t.seconds)
        rows = []
        for trial in timed:
            share = 100 * timed[0].seconds / trial.seconds
            bar = f"<div style='background:#4477aa;height:0.8em;width:{share:.0f}%'></div>"
            cells = f"<td style='text-align:left'>{html.escape(trial.words)}</td><td>{_seconds(trial.seconds)}</td>"
            rows.append(f"<tr>{cells}<td style='width:16em'>{bar}</td></tr>")
        refused = len(self) - len(timed)
        head = "<tr><th style='text-align:left'>mapping</th><th>time of a call</th><th>speed of the fastest</th></tr>"
        return f"<table>{head}{''.join(rows)}</table><p>{refused} more were refused: <code>reason</code> says why.</p>"


@dataclass(frozen=True)
class Kept:
    """A mapping that was kept."""

    mapping: str
    #: Where it is known from, in words.
    source: str


def path() -> Optional[Path]:
    """The file of tuned mappings; none where there is no cache."""
    cache = _kingpost.cache_directory()
    return None if cache is None else Path(cache) / "tuned.jsonl"


def export(file: Union[str, os.PathLike]) -> int:
    """Writes the tuned mappings of this user, the last one of each form, device and sizes; returns how many."""
    last = {_key(line): line for line in _lines(path())}
    Path(file).write_text("".join(f"{json.dumps(line, sort_keys=True)}\n" for line in last.values()))
    return len(last)


def load(file: Union[str, os.PathLike]) -> int:
    """Adds the tuned mappings of a file that :func:`export` wrote to those of this user; returns how many."""
    lines = list(_lines(Path(file), strict=True))
    for line in lines:
        _append(line)
    return len(lines)


def form_hash(*parts: Any) -> str:
    """What tells a form and how it is lowered from others."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def keep(form: str, part: str, device: str, sizes: dict[str, int], mapping: dict[str, Any], seconds: float) -> None:
    """Keeps a mapping; without a cache that can be written, nothing."""
    date = datetime.date.today().isoformat()
    line = {"form": form, "part": part, "device": device, "sizes": sizes, "mapping": mapping, "seconds": seconds}
    _append({**line, "date": date, "kingpost": _kingpost.__version__})


def kept(form: str, part: str, device: str) -> Optional[Kept]:
    """The mapping that was kept last for a part of a form on a device."""
    found = None
    for line in _lines(path()):
        if (line["form"], line["part"], line["device"]) == (form, part, device):
            found = line
    if found is None:
        return None
    sizes = ", ".join(f"{name} = {n}" for name, n in found["sizes"].items())
    words = f"tuned on this device for {sizes}, {found['date']}"
    return Kept(json.dumps(found["mapping"], sort_keys=True), words)


def _key(line: dict[str, Any]) -> str:
    return json.dumps([line["form"], line["part"], line["device"], line["sizes"]], sort_keys=True)


def _lines(file: Optional[Path], strict: bool = False) -> Iterator[dict[str, Any]]:
    """The lines of a file. A line that is none is left out: another version may have written it."""
    try:
        text = file.read_text() if file is not None else ""
    except FileNotFoundError:
        if strict:
            raise
        return
    for number, written in enumerate(text.splitlines(), 1):
        try:
            line = json.loads(written)
        except ValueError:
            line = None
        if isinstance(line, dict) and line.keys() >= _KEYS:
            yield line
        elif strict:
            message = f"{file}, line {number}: needed a tuned mapping, as `kingpost.tuning.export` writes them"
            raise ArgumentError(message)


def _append(line: dict[str, Any]) -> None:
    file = path()
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # one write of one line: those of other processes stay whole
        with open(file, "ab", buffering=0) as out:
            out.write((json.dumps(line, sort_keys=True) + "\n").encode())
    except OSError as why:
        print(f"kingpost: the mapping is not kept, {file} cannot be written: {why}", file=sys.stderr)


def _seconds(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def reporter(progress: Union[bool, Callable[[str], None], None]) -> Callable[[str], None]:
    """Where lines of progress go: to a function, or over one line of a terminal; nowhere without one."""
    if callable(progress):
        return progress
    if progress is None:
        progress = sys.stderr.isatty()
    if not progress:
        return lambda line: None

    def over(line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line[:100]}")
        sys.stderr.flush()

    return over


def progress_line(done: int, of: int, best: Optional[tuple[float, str]]) -> str:
    """``12 of 34, fastest 41.2 µs: straight cells, 64 a group``."""
    fastest = "" if best is None else f", fastest {_seconds(best[0])}: {best[1]}"
    return f"tuning: {done} of {of}{fastest}"
