"""Reachability search: the shortest prompt that one pattern matches and others do not.

If no such prompt exists, the search proves it. It walks the automata of all patterns in parallel, breadth
first, and gives up beyond a budget instead of guessing.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING

from peripety.engine.patterns.automaton import Automaton
from peripety.engine.patterns.syntax import MatchSubject, TextKind, TextPattern, parse_pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.engine.patterns.automaton import DfaState
    from peripety.engine.patterns.syntax import Pattern


MAX_STATES = 5_000
"""Maximum number of state combinations per search."""
MAX_COMBINATIONS = 64
"""Maximum number of ways to avoid patterns that are tried."""
MAX_PATTERN_LENGTH = 2_000
"""Maximum length of a pattern text that is compiled to an automaton."""

_MAX_CODE_POINT = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_PRINTABLE_RANGES = (
    range(ord("a"), ord("z") + 1),
    range(ord("0"), ord("9") + 1),
    range(ord(" "), ord("~") + 1),
)

_EXAMPLE_MODEL = "claude-test"

# Patterns to avoid for the prompt, the model and the tool results.
_TextsToAvoid = tuple[list[TextPattern], list[TextPattern], list[TextPattern]]


class UndecidedError(Exception):
    """The search exceeded its budget."""


def find_prompt(wanted: Pattern, avoided: Sequence[Pattern], *, answers: int = 0) -> MatchSubject | None:
    """Return a prompt that one pattern matches and none of the others match; None if none exists.

    Args:
        wanted: the pattern to match.
        avoided: the patterns to avoid.
        answers: minimum number of answers in the conversation.

    Raises:
        UndecidedError: the search exceeded its budget.
    """
    tried = 0
    undecided = False
    low, high = wanted.message_index or (0, None)
    low = max(low, answers)
    # The result can only change where an index interval of a pattern begins or ends.
    borders = {
        low,
        *(end for other in avoided if other.message_index for end in _index_after(other.message_index)),
    }
    for index in sorted(border for border in borders if low <= border and (high is None or border <= high)):
        here = [other for other in avoided if _holds_at(other, index)]
        for prompts, models, results in _ways_to_avoid(here):
            tried += 1
            if tried > MAX_COMBINATIONS:
                raise UndecidedError
            try:
                subject = _find_with_index(wanted, prompts, models, results, index)
            except UndecidedError:
                undecided = True
                continue
            if subject is not None:
                return subject
    if undecided:
        raise UndecidedError
    return None


def _index_after(interval: tuple[int, int]) -> tuple[int, int]:
    return interval[0], interval[1] + 1


def _holds_at(pattern: Pattern, index: int) -> bool:
    low, high = pattern.message_index or (index, index)
    return low <= index <= high


def _ways_to_avoid(avoided: Sequence[Pattern]) -> list[_TextsToAvoid]:
    """Yield each way to avoid all patterns: by the prompt, by the model or by the tool results."""
    ways: list[_TextsToAvoid] = [([], [], [])]
    for other in avoided:
        fields = [
            field
            for field, pattern in enumerate((other.text, other.model, other.tool_result))
            if pattern is not None and pattern.kind is not TextKind.ANY
        ]
        # A pattern for any result requires one, so a request without results avoids it.
        if other.tool_result is not None and other.tool_result.kind is TextKind.ANY:
            fields.append(2)
        ways = [_add_to_way(way, field, other) for way in ways for field in fields]
        if len(ways) > MAX_COMBINATIONS:
            raise UndecidedError
    return ways


def _add_to_way(way: _TextsToAvoid, field: int, other: Pattern) -> _TextsToAvoid:
    prompts, models, results = way
    match field:
        case 0:
            return [*prompts, other.text], models, results
        case 1:
            return prompts, [*models, _given_patterns(other.model)], results
        case _:
            return prompts, models, [*results, _given_patterns(other.tool_result)]


def _given_patterns(pattern: TextPattern | None) -> TextPattern:
    return pattern or TextPattern(TextKind.ANY)


def _find_with_index(
    wanted: Pattern,
    prompts: list[TextPattern],
    models: list[TextPattern],
    results: list[TextPattern],
    index: int,
) -> MatchSubject | None:
    text = _find_text(wanted.text, prompts)
    if text is None:
        return None
    model: str | None = _EXAMPLE_MODEL
    if wanted.model is not None or models:
        model = _find_text(wanted.model, models)
        if model is None:
            return None
    result: str | None = None
    if wanted.tool_result is not None:
        result = _find_text(wanted.tool_result, results)
        if result is None:
            return None
    return MatchSubject(text, model or "", result, index)


# ---- one text


def _find_text(wanted: TextPattern | None, avoided: list[TextPattern]) -> str | None:
    """Return the shortest text that matches one pattern and none of the others."""
    if wanted is None and not avoided:
        return ""
    accepting = [_automaton(wanted)] if wanted is not None else []
    rejecting = [_automaton(other) for other in dict.fromkeys(avoided)]
    symbols = _class_representatives([*accepting, *rejecting])
    begin = (tuple(each.start_state for each in accepting), tuple(each.start_state for each in rejecting))
    if not _is_open(*begin):
        return None
    came: dict[object, tuple[object, str] | None] = {_key(*begin): None}
    queue = deque([begin])
    while queue:
        inside, outside = queue.popleft()
        if all(machine.accepts(state) for machine, state in zip(accepting, inside, strict=True)) and not any(
            machine.accepts(state) for machine, state in zip(rejecting, outside, strict=True)
        ):
            return _reconstruct_text(came, _key(inside, outside))
        here = _key(inside, outside)
        for symbol in symbols:
            following = (
                tuple(machine.step(state, symbol) for machine, state in zip(accepting, inside, strict=True)),
                tuple(machine.step(state, symbol) for machine, state in zip(rejecting, outside, strict=True)),
            )
            key = _key(*following)
            if key in came or not _is_open(*following):
                continue
            if len(came) >= MAX_STATES:
                raise UndecidedError
            came[key] = here, symbol
            queue.append(following)
    return None


def _is_open(inside: tuple[DfaState, ...], outside: tuple[DfaState, ...]) -> bool:
    """Return True if an accepting state is still reachable."""
    return not any(state.dead for state in inside) and not any(state.found for state in outside)


def _key(inside: tuple[DfaState, ...], outside: tuple[DfaState, ...]) -> object:
    return tuple(state.key for state in inside), tuple(state.key for state in outside)


def _reconstruct_text(came: dict[object, tuple[object, str] | None], key: object) -> str:
    characters = []
    while (step := came[key]) is not None:
        key, character = step
        characters.append(character)
    return "".join(reversed(characters))


@lru_cache(maxsize=4096)
def _automaton(pattern: TextPattern) -> Automaton:
    if len(pattern.text) > MAX_PATTERN_LENGTH:
        raise UndecidedError
    return Automaton(parse_pattern(pattern))


def _class_representatives(automata: list[Automaton]) -> list[str]:
    """Return one character per class that the automata distinguish; a printable one if possible."""
    starts = sorted({start for each in automata for start in each.class_starts if start <= _MAX_CODE_POINT})
    spans = zip(starts, [*starts[1:], _MAX_CODE_POINT + 1], strict=True)
    return [character for first, following in spans if (character := _representative(first, following - 1))]


def _representative(first: int, last: int) -> str | None:
    for readable in _PRINTABLE_RANGES:
        code = max(first, readable.start)
        if code <= min(last, readable.stop - 1):
            return chr(code)
    if first in _SURROGATES:
        return chr(_SURROGATES.stop) if last >= _SURROGATES.stop else None
    return chr(first)
