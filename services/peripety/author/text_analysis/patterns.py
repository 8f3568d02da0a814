"""Choice of a dramatic pattern by the verbs of the goals and by other words of the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.author.text_analysis.clauses import match_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.author.text_analysis.clauses import Aim
    from peripety.author.text_analysis.words import Grammar

_LEAST = 2.0
"""The score below which a pattern is not chosen."""
_MARGIN = 0.25
"""The least lead over the second pattern."""
_CUE, _MOST_CUES, _MORE_WORDS, _OTHER_AIM = 1.0, 3, 0.5, 0.3


def score_patterns(
    main: Aim | None, aims: Sequence[Aim], lemmas: Sequence[str], grammar: Grammar
) -> Mapping[str, float]:
    """Return the score of each pattern with one, rounded, the best first."""
    scores: dict[str, float] = {}
    for aim in aims:
        weight = 1.0 if aim is main else _OTHER_AIM
        for pattern, rows in grammar.rows("patterns").items():
            best = max((_score_row(row, aim) for row in rows), default=0.0)
            scores[pattern] = scores.get(pattern, 0.0) + weight * best
    text = f" {' '.join(lemmas)} "
    for pattern, rows in grammar.rows("cues").items():
        hits = sum(f" {' '.join(row)} " in text for row in rows)
        scores[pattern] = scores.get(pattern, 0.0) + _CUE * min(hits, _MOST_CUES)
    found = [(pattern, round(score, 2)) for pattern, score in scores.items() if score > 0]
    return dict(sorted(found, key=lambda item: (-item[1], item[0])))


def _score_row(row: Sequence[str], aim: Aim) -> float:
    if not match_row(row, aim.goal.verb, aim.tail):
        return 0.0
    return aim.trust * (1 + _MORE_WORDS * (len(row) - 1)) / 1.2


def find_best_match(aim: Aim, grammar: Grammar) -> float:
    """Return the best score of a goal in any pattern."""
    rows = (row for rows in grammar.rows("patterns").values() for row in rows)
    return max((_score_row(row, aim) for row in rows), default=0.0)


def choose_pattern(scores: Mapping[str, float]) -> str:
    """Return the best pattern; empty if its score or its lead is too small."""
    ranked = [*scores.items(), ("", 0.0), ("", 0.0)]
    (best, score), (_, second) = ranked[0], ranked[1]
    return best if score >= _LEAST and score - second >= _MARGIN else ""
