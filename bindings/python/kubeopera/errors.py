"""The one exception of the package, with the fields of the C++ error."""

from __future__ import annotations

from typing import List, NamedTuple, Sequence


class Violation(NamedTuple):
    """One field that is wrong: a JSON pointer and why."""

    pointer: str
    message: str


class Error(Exception):
    """A failure that depends on the input. `code` says what kind, `reason` is a stable word, `violations` names fields."""

    def __init__(self, message: str, code: str = "internal", reason: str = "internal", violations: Sequence[Violation] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.violations: List[Violation] = [Violation(*v) for v in violations]
