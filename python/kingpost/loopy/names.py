"""Names of a kernel: valid, distinct, and as close to Loopy's as they can be."""

from __future__ import annotations

import functools
import re

from kingpost._kingpost import Kernel
from kingpost.errors import TextError


@functools.cache
def is_free(word: str) -> bool:
    """Whether a kernel may call a variable so: neither a keyword nor a function."""
    try:
        Kernel.parse(f"kernel k\n\narg {word}: f64[1] inout\n\ns_: {word}[0] = 0.0\n")
    except TextError:
        return False
    return True


class Names:
    """Gives out names, each once."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._used: set[str] = set()

    def of(self, name: str) -> str:
        """The name of a variable of Loopy's; the same one for the same variable."""
        if name not in self._given:
            self._given[name] = self.fresh(name)
        return self._given[name]

    def join(self, name: str, other: str) -> None:
        """Calls a variable of Loopy's as another one."""
        self._given[name] = self.of(other)

    def given(self) -> dict[str, str]:
        """What each variable of Loopy's is called."""
        return dict(self._given)

    def fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        base = re.sub(r"[^A-Za-z0-9_]", "_", name)
        base = base if re.match(r"[A-Za-z_]", base) else f"v{base}"
        base = base if is_free(base) else f"{base}_"
        found, count = base, 0
        while found in self._used:
            count += 1
            found = f"{base}_{count}"
        self._used.add(found)
        return found
