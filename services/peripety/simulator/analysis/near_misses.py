"""Near misses: the rules closest to a prompt that no rule matches.

Each near miss has the failed predicates and an example that would match.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from peripety.sim.patterns import Pattern, TextKind
from peripety.sim.patterns.predicates import predicate
from peripety.sim.patterns.syntax import fold
from peripety.simulator.analysis.search import UndecidedError, find_subject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.sim.patterns import Subject, TextPattern
    from peripety.simulator.scenario.model import Rule

__all__ = ["NearMiss", "NearMisses"]

MOST_RULES = 500
"""Maximum number of rules compared with a prompt."""
MOST_COMPARED = 2_000
"""Maximum number of characters of a prompt that are compared."""

_SHOWN = 60
_prepared = lru_cache(maxsize=4096)(predicate)
_WANTED = {
    TextKind.EXACT: "is not",
    TextKind.CONTAINS: "does not contain",
    TextKind.REGEX: "does not match the regex",
    TextKind.GLOB: "is not like the glob",
}


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A rule that did not match.

    Attributes:
        place: its location, as a path of the file.
        failed: each predicate that does not hold, in words.
        example: a prompt that its prompt pattern matches; None if none was found.
    """

    place: str
    failed: tuple[str, ...]
    example: str | None

    def __str__(self) -> str:
        """Return the near miss as one line."""
        example = "" if self.example is None else f"; {_quoted(self.example)} would match"
        return f"{self.place}: {' and '.join(self.failed)}{example}"


class NearMisses:
    """Index of rules for the comparison with unmatched prompts.

    Args:
        rules: the rules, in order; the first five hundred are compared.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._candidates = [_Candidate(number, rule) for number, rule in enumerate(rules[:MOST_RULES])]

    def closest(self, subject: Subject, count: int = 3) -> list[NearMiss]:
        """Return the rules closest to a prompt, best first.

        Rules with fewer failed predicates are closer; ties are broken by similarity to the prompt.
        """
        ranked = sorted(
            (len(failed), -candidate.likeness(subject), candidate.number, failed)
            for candidate in self._candidates
            if (failed := tuple(candidate.failed(subject)))
        )
        return [
            NearMiss(f"responses[{number}]", failed, self._candidates[number].example(subject))
            for _, _, number, failed in ranked[:count]
        ]


class _Candidate:
    def __init__(self, number: int, rule: Rule) -> None:
        self.number = number
        self._pattern = rule.pattern

    def failed(self, subject: Subject) -> Iterator[str]:
        """Yield each predicate that does not hold."""
        pattern = self._pattern
        if not _holds(pattern.text, subject.text):
            yield f"the prompt {_wish(pattern.text)}"
        if pattern.model is not None and not _holds(pattern.model, subject.model):
            yield f"the model {_wish(pattern.model)}"
        if pattern.tool_result is not None:
            if subject.tool_result is None:
                yield "the request has no tool result"
            elif not _holds(pattern.tool_result, subject.tool_result):
                yield f"the tool result {_wish(pattern.tool_result)}"
        low, high = pattern.message_index or (subject.message_index, subject.message_index)
        if not low <= subject.message_index <= high:
            wanted = f"{low}" if low == high else f"between {low} and {high}"
            yield f"message_index is {subject.message_index}, not {wanted}"

    def likeness(self, subject: Subject) -> float:
        """Return the similarity of the prompt to the pattern, from 0 to 1."""
        wanted = fold(self._example or "")
        if not wanted:
            return 0.0
        given = fold(_unicode(subject.text))[:MOST_COMPARED]
        blocks = SequenceMatcher(None, wanted[:MOST_COMPARED], given, autojunk=False).get_matching_blocks()
        return sum(block.size for block in blocks) / len(wanted)

    def example(self, subject: Subject) -> str | None:
        """Return a prompt that the prompt pattern matches, if the prompt is the failed predicate."""
        return None if _holds(self._pattern.text, subject.text) else self._example

    @cached_property
    def _example(self) -> str | None:
        text = self._pattern.text
        if text.kind in {TextKind.EXACT, TextKind.CONTAINS}:
            return text.text
        try:
            found = find_subject(Pattern(text), ())
        except UndecidedError:
            return None
        return None if found is None else found.text


def _holds(pattern: TextPattern, text: str) -> bool:
    text = _unicode(text)
    return _prepared(pattern).holds(text, fold(text))


def _unicode(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _wish(pattern: TextPattern) -> str:
    case = " in any case" if pattern.ignore_case else ""
    return f"{_WANTED[pattern.kind]} {_quoted(pattern.text)}{case}"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")
