"""For pyright: UFL's own annotations leave out what its operators return."""

from typing import Any

def __getattr__(name: str) -> Any: ...
