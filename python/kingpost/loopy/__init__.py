"""Programs of Loopy as kernels, and proofs of their schedules.

Needs Loopy, which the extra `loopy` of the package installs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

import loopy as lp

from kingpost.errors import ImportRefusal
from kingpost.loopy.imported import Correspondence, Imported, Reading
from kingpost.loopy.prove import Proof, prove_loopy


def from_loopy(t_unit: lp.TranslationUnit, *, types: Optional[Mapping[str, Any]] = None) -> Imported:
    """Reads a program of Loopy, plain or transformed.

    Loopy infers types, inlines callees and orders the instructions. Tags `g.n`, `l.n`, `unr`, `ilp` and `vec`
    are kept, and private temporaries of several loops over work-items get an axis for these. Global barriers
    part launches. Barriers within a group are derived from the accesses by whoever generates code; Loopy's part
    the loops over work-items, so that a missing one is found as a race.

    ``types`` has NumPy types of arguments that Loopy knows no type of.

    Raises :class:`kingpost.ImportRefusal`, which has `feature` and `instruction`, for what has no counterpart.
    """
    return Reading(t_unit, types).imported()


__all__ = ["Correspondence", "ImportRefusal", "Imported", "Proof", "from_loopy", "prove_loopy"]
