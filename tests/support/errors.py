"""Every class of the error tree, as clients know it, and an example of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import FieldViolation, Finding, PeripetyError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator


def _below(root: type[PeripetyError]) -> Iterator[type[PeripetyError]]:
    for child in root.__subclasses__():
        yield child
        yield from _below(child)


# What other modules derive from them reaches a client as one of these.
ALL_ERRORS = sorted(
    (error for error in _below(PeripetyError) if error.__module__ == PeripetyError.__module__),
    key=lambda error: error.__name__,
)


def example(error: type[PeripetyError], *, code: str | None = "SOME_CODE") -> PeripetyError:
    """An error of that class that uses everything an error can carry."""
    if issubclass(error, SpecError):
        return error("the document is refused", [Finding("A", "/b", "must be c")], code=code)
    rest: dict[str, Any] = {"details": {"limit": "7"}, "violations": [FieldViolation("a.b", "is required")]}
    return error("a sentence with ü and 語", code=code, retry_after=1.5, **rest)
