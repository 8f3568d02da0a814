"""Script errors: all problems of a script, each with position, field and remedy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.errors import FieldViolation, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FieldPath", "Place", "Problem", "ScenarioError", "field_name"]

FieldPath = tuple[str | int, ...]
"""Path to a field from the root of a document: keys, and array indices from 0."""

_BARE = re.compile(r"[A-Za-z_$][A-Za-z0-9_-]*")
_SHOWN = 20


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line and a column of a text, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a script.

    Attributes:
        path: the field; empty for the whole document.
        sentence: the problem and its remedy.
        place: the position; None if the script was not text.
    """

    path: FieldPath
    sentence: str
    place: Place | None = None

    @property
    def field(self) -> str:
        """The field as shown in messages, such as `responses[3].turns[0].expect.text`."""
        return field_name(self.path)


class ScenarioError(InvalidArgumentError):
    """A script is not valid.

    Attributes:
        source: the file, or another name of the origin.
        problems: all problems, in the order of the text.
    """

    default_code = "SCENARIO_INVALID"

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        many = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(
            f"{source} is not a valid script: {many}",
            violations=[FieldViolation(p.field or "/", f"{p.sentence} ({self.where(p)})") for p in problems],
        )

    def where(self, problem: Problem) -> str:
        """Return the position of a problem in the form that editors recognise: `file:line:column`."""
        place = problem.place
        return self.source if place is None else f"{self.source}:{place.line}:{place.column}"

    def __str__(self) -> str:
        """Return all problems, one per line; a long list is truncated, with a note."""
        lines = [self.message]
        for problem in self.problems[:_SHOWN]:
            field = f"{problem.field}: " if problem.path else ""
            lines.append(f"  {self.where(problem)}: {field}{problem.sentence}")
        if len(self.problems) > _SHOWN:
            lines.append(f"  ... and {len(self.problems) - _SHOWN} more")
        return "\n".join(lines)


def field_name(path: FieldPath) -> str:
    """Format a path for messages, such as `responses[3].turns[0].expect.text`."""
    name = ""
    for step in path:
        if isinstance(step, str) and _BARE.fullmatch(step):
            name += f".{step}" if name else step
        else:
            name += f"[{step!r}]"
    return name
