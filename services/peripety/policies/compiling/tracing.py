"""Traceability of rules to sentences of the written policy, without a model call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.authoring.policies.sentences import sentences_of
from peripety.errors import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

__all__ = ["unfollowed"]

_WORD = re.compile(r"\w+")
_SHOWN = 200


def unfollowed(constitution: str, rules: Iterable[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """Return a warning for each sentence that no rule names as its principle.

    Args:
        constitution: the written policy.
        rules: all rules, including invariants.
    """
    followed = {words for rule in rules for words in _known_by(rule.get("principle", ""))}
    return tuple(
        Finding("SENTENCE_UNFOLLOWED", "", f"no rule implements: {_clipped(sentence)}", Severity.WARNING)
        for sentence in dict.fromkeys(sentences_of(constitution))
        if _words(sentence) not in followed
    )


def _known_by(principle: str) -> Iterator[tuple[str, ...]]:
    """Yield the normalized words of sentences, which identify them regardless of formatting."""
    yield _words(principle)
    yield from map(_words, sentences_of(principle))


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))


def _clipped(sentence: str) -> str:
    return sentence if len(sentence) <= _SHOWN else f"{sentence[: _SHOWN - 1]}…"
