"""What is wrong with a scenario, all of it at once: where, in which field, and the way out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.errors import FieldViolation, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FieldPath", "Place", "Problem", "ScenarioError", "field_name"]

FieldPath = tuple[str | int, ...]
"""The way to a field from the top of a document: keys, and indices of arrays from 0."""

_BARE = re.compile(r"[A-Za-z_$][A-Za-z0-9_-]*")
_SHOWN = 20


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line and a column of a text, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        path: the field; empty for the document as a whole.
        sentence: what is wrong with it and what to do.
        place: where it stands; None for what was never a text.
    """

    path: FieldPath
    sentence: str
    place: Place | None = None

    @property
    def field(self) -> str:
        """The field as it is written in messages, such as `responses[3].turns[0].expect.text`."""
        return field_name(self.path)


class ScenarioError(InvalidArgumentError):
    """A scenario that cannot be used.

    Attributes:
        source: the file, or another name of where it comes from.
        problems: everything that is wrong, in the order of the text.
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
        """The place of a problem as editors know it: `file:line:column`."""
        place = problem.place
        return self.source if place is None else f"{self.source}:{place.line}:{place.column}"

    def __str__(self) -> str:
        """Everything that is wrong, a line each; a long list is cut, and says so."""
        lines = [self.message]
        for problem in self.problems[:_SHOWN]:
            field = f"{problem.field}: " if problem.path else ""
            lines.append(f"  {self.where(problem)}: {field}{problem.sentence}")
        if len(self.problems) > _SHOWN:
            lines.append(f"  ... and {len(self.problems) - _SHOWN} more")
        return "\n".join(lines)


def field_name(path: FieldPath) -> str:
    """A path as it is written in messages, such as `responses[3].turns[0].expect.text`."""
    name = ""
    for step in path:
        if isinstance(step, str) and _BARE.fullmatch(step):
            name += f".{step}" if name else step
        else:
            name += f"[{step!r}]"
    return name
