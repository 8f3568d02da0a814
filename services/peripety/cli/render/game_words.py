"""Words of the terminal around a story, in the language of the story, and the reasons of refusals in them.

A story in a language without words here has English ones. Names of quantities are those of the labels.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from peripety.author.text_analysis.reading import find_language, find_story_language

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


_DEFAULT = "en"
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    "==": lambda left, right: left == right,
    "===": lambda left, right: left == right,
}
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "==", "===": "==="}
_HIDDEN = ("state.hidden", "state.private")


@cache
def _load_words() -> dict[str, dict[str, Any]]:
    text = resources.files(__package__).joinpath("game_words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


class GameWords:
    """Words of one language.

    Args:
        language: the language; words of other languages are English.
    """

    def __init__(self, language: str = _DEFAULT) -> None:
        tables = _load_words()
        self._words = tables.get(language, tables[_DEFAULT])

    @classmethod
    def of_text(cls, text: str) -> GameWords:
        """Return the words in the language of a text."""
        return cls(find_language(text))

    @classmethod
    def of_scenario(cls, spec: Mapping[str, Any]) -> GameWords:
        """Return the words in the language of a scenario: of its opening, and of the names of its actions."""
        return cls(find_story_language(spec))

    def say(self, key: str, **values: object) -> str:
        """Return a text with its values."""
        text: str = self._words[key]
        return text.format_map(values)

    def join(self, names: Iterable[str]) -> str:
        """Return names as a list."""
        return self.say("join").join(names)

    @property
    def commands(self) -> Sequence[tuple[str, str]]:
        """The commands of the prompt with their meanings."""
        return [(command, meaning) for command, meaning in self._words["help"]]

    def count(self, number: int, unit: str) -> str:
        """Return a number of units, such as `14 days`."""
        return self._count(number, self._words["units"][unit][:2])

    def count_played(self, turns: int) -> str:
        """Return the number of turns that a run took, as it follows "after"."""
        forms = self._words["units"]["turn"]
        return self._count(turns, [forms[0], forms[-1]])

    def _count(self, number: int, forms: Sequence[str]) -> str:
        return f"{number:,} {forms[0] if number == 1 else forms[-1]}"

    def explain_refusal(
        self, spec: Mapping[str, Any], action_id: str, state: Mapping[str, Any], name: Callable[[str], str]
    ) -> str:
        """Return why an action is not legal, by the quantities that the player sees.

        Args:
            spec: the specification.
            action_id: the action.
            state: the visible state.
            name: returns the name of a path.
        """
        rule: Mapping[str, Any] = next(
            (one for one in spec.get("actions") or () if one["id"] == action_id), {}
        )
        clauses = [*_split_clauses(rule.get("preconditions"))]
        sides: dict[str, list[str]] = {"too_low": [], "too_high": []}
        for operator, path, bound in clauses:
            value = _find_number(state, path)
            if value is not None and not _OPERATORS[operator](value, bound):
                sides["too_low" if value < bound or operator == ">" else "too_high"].append(name(path))
        reasons = [
            self.say(side, names=self.join(dict.fromkeys(names))) for side, names in sides.items() if names
        ]
        hidden = {path for _, path, _ in clauses if path.startswith(_HIDDEN)}
        if not reasons and (rule.get("once") or hidden):
            is_own = rule.get("once") or not hidden & _paths_of_the_world(spec)
            reasons = [self.say("done_before" if is_own else "unseen")]
        return " ".join([self.say("cannot"), *reasons])


def _split_clauses(logic: Any) -> Iterator[tuple[str, str, float]]:
    """Yield the comparisons of a path with a number that all have to hold: operator, path and number."""
    if not isinstance(logic, dict) or len(logic) != 1:
        return
    (operator, operands), *_ = logic.items()
    if not isinstance(operands, list):
        return
    if operator == "and":
        for part in operands:
            yield from _split_clauses(part)
    elif operator in _OPERATORS and len(operands) == 2:  # noqa: PLR2004 - two sides
        for side, other, shown in (
            (*operands, operator),
            (*reversed(operands), _MIRRORED[operator]),
        ):
            path = side.get("var") if isinstance(side, dict) else None
            if isinstance(path, str) and _is_number(other):
                yield shown, path, other


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _find_number(state: Mapping[str, Any], path: str) -> float | None:
    """Return the number at a path of plain names; None if the player does not see one there."""
    value: Any = {"state": state}
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value if _is_number(value) else None


def _paths_of_the_world(spec: Mapping[str, Any]) -> set[str]:
    """Return the paths that change without an action."""
    rules = [*(spec.get("random_events") or ()), *(spec.get("schedules") or ())]
    written = {effect.get("path", "") for rule in rules for effect in rule.get("effects") or ()}
    dealt = {deal.get("path", "") for deal in spec.get("deal") or ()}
    return written | dealt | set((spec.get("negativity_budget") or {}).get("decay_per_turn") or ())
