"""Which sentences of a written policy no rule follows, by what rules say of themselves: no model is asked."""

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
    """A warning for each sentence that is the principle of no rule.

    Args:
        constitution: the written policy.
        rules: all rules, invariants among them.
    """
    followed = {words for rule in rules for words in _known_by(rule.get("principle", ""))}
    return tuple(
        Finding("SENTENCE_UNFOLLOWED", "", f"no rule follows: {_clipped(sentence)}", Severity.WARNING)
        for sentence in dict.fromkeys(sentences_of(constitution))
        if _words(sentence) not in followed
    )


def _known_by(principle: str) -> Iterator[tuple[str, ...]]:
    """What sentences are known by: their words, however they are set."""
    yield _words(principle)
    yield from map(_words, sentences_of(principle))


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))


def _clipped(sentence: str) -> str:
    return sentence if len(sentence) <= _SHOWN else f"{sentence[: _SHOWN - 1]}…"
