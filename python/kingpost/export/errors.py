"""Errors of the exporter: what a user wrote that the tabulated form cannot say."""

from __future__ import annotations

from kingpost import errors


class FormError(errors.FormError):
    """A form that is wrong: not linear in an argument, not restricted, not a form."""


class UnsupportedForm(FormError):
    """A valid form that uses something the tabulated form does not have.

    Args:
        what: What was found, as the user would name it.
        instead: What to do instead, if there is something.
    """

    def __init__(self, what: str, instead: str | None = None) -> None:
        self.what = what
        self.instead = instead
        super().__init__(what if instead is None else f"{what}; {instead}")
