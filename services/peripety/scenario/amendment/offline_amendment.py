"""Rule-based amendment: parses an instruction by a few words of each language, and applies its edits.

Rules can change durations, chances, amounts and decay, and can remove actions and events. An edit request
has a kind, a factor and a target, which the text names.
"""

from __future__ import annotations

import math
import re
import tomllib
import unicodedata
from copy import deepcopy
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import Enum
from functools import cache, partial
from importlib.resources import files
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from peripety.engine.rule_text import format_path
from peripety.errors import Finding
from peripety.scenario.balance.parameters import WEIGHT_BOUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping


DEFAULT_FACTOR = 1.5
"""The factor of a change without an explicit degree."""
_MAX_FACTOR = 1_000.0
"""The maximum factor of a number."""
_DEGREES = {"slightly": (1.2, 1 / 1.2), "half": (1.5, 0.5), "much": (2.0, 0.5), "twice": (2.0, 0.5)}
"""The factors of words for a degree, for an increase and for a decrease."""
_PERCENT = re.compile(r"(\d+(?:[.,]\d+)?)\s*(?:%|per ?cent\w*|pro[cz]ent\w*|por ?cien?to)")
_LETTER = re.compile(r"[^\W\d_]")
_SENTENCE_END = re.compile(r"[,;.!?\u3001\uff0c\u3002\uff1b\uff01\n]+(?!\d)")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Scripts without spaces between words; a word may begin and end anywhere."""


class EditKind(Enum):
    """Kind of an edit."""

    LONGER = "longer"
    SHORTER = "shorter"
    LIKELIER = "likelier"
    RARER = "rarer"
    FASTER = "faster"
    SLOWER = "slower"
    HARDER = "harder"
    EASIER = "easier"
    MORE = "more"
    LESS = "less"
    REMOVED = "removed"

    @property
    def is_increase(self) -> bool:
        """Return True for an increase."""
        return self in {EditKind.LONGER, EditKind.LIKELIER, EditKind.FASTER, EditKind.HARDER, EditKind.MORE}


@dataclass(frozen=True, slots=True)
class EditRequest:
    """Edit request from one clause.

    Attributes:
        kind: the kind of the edit.
        factor: the factor of the number.
        target: the clause without the recognized words; it names the target.
        is_general: True if nothing remains, so that the target is the scenario as a whole.
    """

    kind: EditKind
    factor: float
    target: str
    clause: str
    is_general: bool


def parse_instruction(text: str) -> list[EditRequest | str]:
    """Parse a text into edit requests, clause by clause; a clause without a request is returned as text.

    The language with the most recognized clauses is used.
    """
    heard = [list(_parse_in_language(text, language)) for language in _load_words()["longer"]]
    return min(heard, key=lambda found: (not found, sum(isinstance(one, str) for one in found)))


def normalize_text(text: str) -> str:
    """Normalize a text: compatibility forms, case and apostrophes."""
    return unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")


def _parse_in_language(text: str, language: str) -> Iterator[EditRequest | str]:
    for sentence in _SENTENCE_END.split(normalize_text(text)):
        unheard, before = "", None
        for clause in _phrase_pattern("and", language).sub("\n", sentence).split("\n"):
            # A clause without a kind may be the first of several targets of the next clause.
            unheard = f"{unheard} {clause}".strip()
            wish = _parse_clause(unheard, language)
            if wish is not None:
                if wish.is_general and before is not None:
                    # "longer and harder": the target is in the earlier clause.
                    wish = replace(wish, target=before.target, is_general=before.is_general)
                yield wish
                unheard, before = "", wish
        if unheard:
            yield unheard


def _parse_clause(clause: str, language: str) -> EditRequest | None:
    if _phrase_pattern("denied", language).search(clause):
        return None
    left, ways = clause, []
    for way in EditKind:
        left, found = _phrase_pattern(way.value, language).subn(" ", left)
        ways += [way] * bool(found)
    if not ways:
        # "to double" is an increase, even in languages with one word for it.
        means = {"twice": EditKind.MORE, "half": EditKind.LESS}
        ways = [way for word, way in means.items() if _phrase_pattern(word, language).search(left)]
    if len(ways) != 1:
        return None
    (way,) = ways
    factor, left = _extract_factor(left, way, language)
    if _phrase_pattern("half_as", language).search(clause):
        factor = 0.5  # "half as long" is shorter, although it contains "long"
    if not 0 < factor <= _MAX_FACTOR or any(map(str.isdigit, left)):
        return None  # out of range, or a number with an unknown unit
    named = _phrase_pattern("filler", language).sub(" ", left)
    # In scripts without spaces, a filler word may be part of a name.
    about = left if UNSPACED.search(left) else named
    return EditRequest(way, factor, about, clause, is_general=not _LETTER.search(named))


def _extract_factor(text: str, kind: EditKind, language: str) -> tuple[float, str]:
    """Return the factor of a change, and the text without the words for it."""
    percent = _PERCENT.search(text)
    if percent is not None:
        share = float(percent[1].replace(",", ".")) / 100
        return 1 + share if kind.is_increase else 1 - share, text.replace(percent[0], " ")
    step = (DEFAULT_FACTOR, 1 / DEFAULT_FACTOR)
    for word, told in _DEGREES.items():
        text, found = _phrase_pattern(word, language).subn(" ", text)
        step = told if found else step
    more, less = step
    return more if kind.is_increase else less, text


@cache
def _phrase_pattern(kind: str, language: str) -> re.Pattern[str]:
    """Return a pattern for the phrases of a kind, longest first."""
    longest_first = sorted(_load_words()[kind][language], key=len, reverse=True)
    return re.compile("|".join(map(_phrase_to_regex, longest_first)))


def _phrase_to_regex(phrase: str) -> str:
    words = re.escape(normalize_text(phrase).removesuffix("*"))
    if UNSPACED.search(phrase):
        return words
    return rf"(?<!\w){words}\w*" if phrase.endswith("*") else rf"(?<!\w){words}(?!\w)"


@cache
def _load_words() -> dict[str, dict[str, list[str]]]:
    text = files("peripety.scenario.amendment").joinpath("words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


_WORD = re.compile(r"[^\W\d_]+")
_STEM = 4
_MAX_ENDING = 3
_MIN_LETTERS = 2
_NO_MATCH = (0, 0, 0.0)
# In a text without spaces, the maximum of unrecognized letters for each recognized one.
_LOOSE_LETTERS = 2

T = TypeVar("T", bound="Hashable")


def find_mentioned(text: str, *groups: Iterable[tuple[str, T]]) -> list[T]:
    """Return the things that a text mentions, by best match of their words.

    Args:
        text: normalized text without filler words.
        groups: things by name; one thing may have several names. For equal matches, the earlier group wins.

    Returns:
        Every thing that matches some words better than any other; empty if most words match nothing, because
        then the text is about something else.
    """
    named = [
        _NamedThing(_WORD.findall(normalize_text(name)), thing, place)
        for place, things in enumerate(groups)
        for name, thing in things
    ]
    left, found = _UnmatchedText(text), dict[T, None]()
    while left.words:
        ranked = [(left.match_words(one.words), one) for one in named]
        best = max((_rank_by_match(words, one) for words, one in ranked), default=_NO_MATCH)
        if not best[0]:
            break
        chosen = [(words, one) for words, one in ranked if _rank_by_match(words, one) == best]
        found |= dict.fromkeys(one.thing for _, one in chosen)
        left = left.remove_words({word for words, _ in chosen for word in words})
    return list(found) if left.is_negligible_in(text) else []


@dataclass(frozen=True, slots=True)
class _NamedThing(Generic[T]):
    words: list[str]
    thing: T
    group: int


class _UnmatchedText:
    """Unmatched rest of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.words = _WORD.findall(text)

    def match_words(self, name: Iterable[str]) -> set[str]:
        """Return the words of a name, as they occur in the text."""
        found = set()
        for sought in name:
            if UNSPACED.search(sought):
                found |= _shared_part(sought, self._text)
            else:
                found |= {word for word in self.words if _is_same_word(sought, word)}
        return found

    def remove_words(self, words: Iterable[str]) -> _UnmatchedText:
        """Return the text without some words."""
        gone = [re.escape(word) if UNSPACED.search(word) else rf"\b{re.escape(word)}\b" for word in words]
        return _UnmatchedText(re.sub("|".join(gone), " ", self._text))

    def is_negligible_in(self, whole: str) -> bool:
        """Return True if the rest is a negligible part of the whole text."""
        if UNSPACED.search(whole):
            letters, rest = (len("".join(_WORD.findall(text))) for text in (whole, self._text))
            return rest <= _LOOSE_LETTERS * (letters - rest)
        return 2 * len(self.words) <= len(_WORD.findall(whole))


def _rank_by_match(words: set[str], named: _NamedThing[T]) -> tuple[int, int, float]:
    return (len(words), -named.group, len(words) / len(named.words)) if words else _NO_MATCH


def _shared_part(word: str, text: str) -> set[str]:
    """Return the part of a word that occurs in a text without spaces, if it is most of the word."""
    match = SequenceMatcher(None, word, text, autojunk=False).find_longest_match()
    is_most = match.size >= max(_MIN_LETTERS, len(word) / 2)
    return {word[match.a : match.a + match.size]} if is_most else set()


def _is_same_word(one: str, other: str) -> bool:
    """Return True if two words differ only in their endings."""
    stem = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return one == other or (stem >= _STEM and max(len(one), len(other)) - stem <= _MAX_ENDING)


_MAX_LENGTH = 2_000
"""The maximum length of an instruction; a longer text is never a list of simple edits."""
_MAX_TURNS = 1_000
_DEFAULT_HORIZON = 50
_DEFAULT_TURN = "1h"
_MIN_DURATION_FACTOR = 2
_DIFFICULTY_STEP = 0.15
_FAIL_RATES = (0.2, 0.85)
_MIN_BAND_WIDTH = 0.1
_COUNT = re.compile(r"\d+")

_Edit: TypeAlias = "Callable[[float], None]"
"""A function that changes one value of a document by a factor."""


def apply_edits(spec: Mapping[str, Any], instruction: str, fail_rate: float) -> dict[str, Any] | Finding:
    """Return the specification with the edits of an instruction, or a finding if they cannot be made.

    The edits alone do not make a valid specification invalid. The caller validates that it can still be won
    and is lost often enough.

    Args:
        spec: a valid specification; not modified.
        instruction: the text.
        fail_rate: the current fail rate, from which "harder" and "easier" start.
    """
    if len(instruction) > _MAX_LENGTH:
        return _not_understood_finding(instruction, f"rules read texts of at most {_MAX_LENGTH:,} characters")
    changed = deepcopy(dict(spec))
    heard = parse_instruction(instruction)
    if not heard:
        return _not_understood_finding(instruction, "the text is empty")
    for wish in heard:
        if isinstance(wish, str):
            return _not_understood_finding(wish, "not a change that rules can make")
        bends = (
            _edits_of_scenario(changed, wish.kind, fail_rate)
            if wish.is_general
            else _edits_of_named(changed, wish)
        )
        if not bends:
            what = "removed" if wish.kind is EditKind.REMOVED else f"made {wish.kind.value}"
            return _not_understood_finding(wish.clause, f"it names nothing that could be {what}")
        for bend in bends:
            bend(wish.factor)
    if changed == spec:
        message = (
            "the requested change has no effect: the values are already as requested, or at their limits"
        )
        return Finding("AMENDMENT_CHANGES_NOTHING", "", message)
    return changed


def _not_understood_finding(clause: str, reason: str) -> Finding:
    return Finding("AMENDMENT_NOT_UNDERSTOOD", "", f"'{clause[:200]}': {reason}")


def _edits_of_named(spec: dict[str, Any], request: EditRequest) -> list[_Edit]:
    """Return the edits of the named parts, for the kind of the request."""
    actions, events = spec["actions"], spec["random_events"]
    match request.kind:
        case EditKind.LONGER | EditKind.SHORTER:
            lasting = (
                _named_edits(rules, lambda rule: _edit_timing(rule, spec)) for rules in (events, actions)
            )
            return find_mentioned(request.target, *lasting)
        case EditKind.LIKELIER | EditKind.RARER:
            return find_mentioned(request.target, _named_edits(events, _edit_chance))
        case EditKind.FASTER | EditKind.SLOWER:
            decay = spec["negativity_budget"].get("decay_per_turn", {})
            return find_mentioned(
                request.target,
                [(_last_key(path), _edit_number(decay, path)) for path in decay],
            )
        case EditKind.MORE | EditKind.LESS:
            return find_mentioned(
                request.target,
                _state_edits(spec["state"]),
                _named_edits([*actions, *events], _edit_strength),
            )
        case EditKind.HARDER | EditKind.EASIER:
            return find_mentioned(request.target, _named_edits(events, _edit_strength))
        case EditKind.REMOVED:
            going = (_named_edits(rules, partial(_edit_removal, rules)) for rules in (actions, events))
            return find_mentioned(request.target, chain.from_iterable(going))


def _edits_of_scenario(spec: dict[str, Any], kind: EditKind, fail_rate: float) -> list[_Edit]:
    """Return the edit of the scenario as a whole: its length or its difficulty."""
    if kind in {EditKind.LONGER, EditKind.SHORTER}:
        return [_edit_horizon(spec)]
    if kind in {EditKind.HARDER, EditKind.EASIER}:
        return [_edit_difficulty(spec["negativity_budget"], fail_rate)]
    return []


def _named_edits(
    rules: Iterable[dict[str, Any]],
    edit_of: Callable[[dict[str, Any]], _Edit | None],
) -> Iterator[tuple[str, _Edit]]:
    """Yield the edit of each rule, under its id and its name."""
    for rule in rules:
        bend = edit_of(rule)
        if bend is not None:
            yield rule["id"], bend
            if "name" in rule:
                yield rule["name"], bend


def _state_edits(tree: dict[str, Any]) -> Iterator[tuple[str, _Edit]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _state_edits(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield key, _edit_number(tree, key)


def _last_key(path: str) -> str:
    return format_path(path).rpartition(".")[2]


def _edit_number(holder: dict[str, Any], key: str) -> _Edit:
    def bend(factor: float) -> None:
        holder[key] = _scale_number(holder[key], factor)

    return bend


def _edit_horizon(spec: dict[str, Any]) -> _Edit:
    def bend(factor: float) -> None:
        turns = spec.get("horizon", _DEFAULT_HORIZON)
        spec["horizon"] = min(max(round(turns * factor), 1), _MAX_TURNS)

    return bend


def _edit_difficulty(budget: dict[str, Any], fail_rate: float) -> _Edit:
    """Return an edit of the target fail rate; balancing finds the numbers for it."""

    def bend(factor: float) -> None:
        step = _DIFFICULTY_STEP * math.log(factor, DEFAULT_FACTOR)
        aim = min(max(fail_rate + step, _FAIL_RATES[0]), _FAIL_RATES[1])
        least, most = budget["min_fail_rate"], budget.get("max_fail_rate")
        if factor > 1:
            least = max(least, round(aim, 2))
            most = None if most is None else max(most, round(least + 2 * _MIN_BAND_WIDTH, 2))
        else:
            most = min(1.0 if most is None else most, round(aim, 2))
            least = min(least, round(most - _MIN_BAND_WIDTH, 2))
        budget.update({"min_fail_rate": least} | ({} if most is None else {"max_fail_rate": min(most, 1.0)}))

    return bend


def _edit_chance(rule: dict[str, Any]) -> _Edit:
    def bend(factor: float) -> None:
        least, most = WEIGHT_BOUNDS
        rule["weight"] = round(min(max(rule["weight"] * factor, least), most), 4)

    return bend


def _edit_timing(rule: dict[str, Any], spec: Mapping[str, Any]) -> _Edit | None:
    """Return an edit of a rule's duration, or of the delay of its scheduled effects."""
    delays = [one for one in rule["effects"] if one["op"] == "schedule" and one.get("after") is not None]
    if "weight" not in rule and not delays:
        return None
    turn = spec.get("clock", {}).get("turn", _DEFAULT_TURN)

    def bend(factor: float) -> None:
        if "duration" in rule:
            rule["duration"] = _scale_duration(rule["duration"], factor)
        elif "weight" in rule and factor > 1:
            rule["duration"] = _scale_duration(turn, max(factor, _MIN_DURATION_FACTOR))
        for delay in delays:
            after = delay["after"]
            delay["after"] = (
                _scale_duration(after, factor) if isinstance(after, str) else _scale_turns(after, factor)
            )

    return bend


def _edit_strength(rule: dict[str, Any]) -> _Edit | None:
    """Return an edit of the amounts of a rule."""
    moved = list(_iter_numeric_effects(rule["effects"]))

    def bend(factor: float) -> None:
        for effect in moved:
            effect["value"] = _scale_number(effect["value"], factor)

    return bend if moved else None


def _iter_numeric_effects(effects: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for effect in effects:
        if effect["op"] == "schedule":
            yield from _iter_numeric_effects(effect["effects"])
        elif effect["op"] in {"inc", "dec"} and not isinstance(effect["value"], str):
            yield effect


def _edit_removal(rules: list[dict[str, Any]], rule: dict[str, Any]) -> _Edit:
    def bend(_factor: float) -> None:
        rules[:] = [one for one in rules if one is not rule]

    return bend


def _scale_number(value: float, factor: float) -> float:
    """Return the product; an integer stays an integer unless rounding would undo the change."""
    exact = value * factor
    if not math.isfinite(exact):
        return value
    whole = round(exact)
    if value == round(value) and whole not in {0, value}:
        return whole
    return float(f"{exact:.3g}")


def _scale_duration(duration: str, factor: float) -> str:
    return _COUNT.sub(lambda count: str(_scale_turns(int(count[0]), factor)), duration)


def _scale_turns(turns: int, factor: float) -> int:
    """Return the number of turns times the factor, at least one."""
    return max(math.ceil(turns * factor) if factor > 1 else math.floor(turns * factor), 1)
