"""Code generator for dry-runs: compiles a scenario to one Python function over local variables.

The function plays a whole run and reports nothing else. It abandons the run where a rule fails or might fail,
where a limit might be reached, or where a value changes its kind. The interpreter then plays the same run
from its start. A run is a pure function of its seed, so this changes only the time. The interpreter
remains the definition: it also plays scenarios that cannot be compiled, personas that look ahead, and
dry-runs with detail.

For a scenario with one action, one event and one loss condition, this is the source:

    def play(seed, horizon, rows):
        s0 = 20.0
        s1 = 3.0
        outcome, condition = "survived", None
        for turn, draws in zip(range(1, horizon + 1), rows):
            legal = []
            if s0 > 2.0:
                legal.append(0)
            if legal:
                action = legal[(draws[1] >> 32) * len(legal) >> 32]
                s0 -= 1.5
                s1 = s1 * 0.95 + 0.0
            chance = (draws[0] >> 11) * 1.1102230246251565e-16
            reached = 0.0
            if (s1 < 5.0) and chance < (reached := reached + 0.25):
                s0 += 2.0
            s1 -= 0.25
            if s0 <= 0.0:
                outcome, condition = "lost", 0
                break
        return outcome, condition, turn, (s0, s1,)

Random draws are computed for a block of turns at once. A large integer serves as a vector: each lane of
128 bits holds one 64-bit number, with room for a product. One slow operation on integers so handles sixteen
turns.

Modules: `code` (source fragments, local variables, limits), `expressions` and `string_operators` (JSONLogic),
`statements` (derived values and effects), `run_template` (the phases of a turn); this module compiles and
executes the result.
"""

from __future__ import annotations

import copy
import struct
from functools import partial, reduce
from itertools import chain, count
from math import fmod
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.codegen.code import (
    MAX_NUMBER,
    MAX_TEXT_BYTES,
    MAX_TURNS,
    CodegenContext,
    NotLoweredError,
    SlotLayout,
    check_state_limits,
)
from peripety.engine._reference.codegen.run_template import write_run
from peripety.engine._reference.effects import EVENT_STREAM
from peripety.engine._reference.jsonlogic_operators import cut_text, to_number, to_text
from peripety.engine._reference.state import RunEnd
from peripety.engine._reference.turn import POLICY_STREAM
from peripety.engine.backend_protocol import EngineError
from peripety.engine.canonical_json import canonicalize
from peripety.engine.paths import MISSING, lookup
from peripety.engine.rng import INCREMENT, MULTIPLIERS, draw, mix, stream_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.engine._reference.state import Rules


POLICY_KEY = stream_key(POLICY_STREAM)
_EVENT_KEY = stream_key(EVENT_STREAM)
_BLOCK_TURNS = 16
_LANE_BITS = 128
_FULL = (1 << 64) - 1


class DrawBlocks:
    """First draws of each turn: one for the event, and several for the persona.

    Args:
        width: number of the persona's draws in a row.
    """

    def __init__(self, width: int) -> None:
        lanes = (width + 1) * _BLOCK_TURNS
        self._width = width
        self._bytes = lanes * _LANE_BITS // 8
        self._rows = struct.Struct("<" + "Q8x" * (width + 1))
        self._events = _pack_lanes([1, *[0] * width] * _BLOCK_TURNS)
        self._policies = _pack_lanes([0, *[1] * width] * _BLOCK_TURNS)
        self._full = _pack_lanes([_FULL] * lanes)
        self._counters: dict[int, int] = {}  # by block; concurrent threads compute equal entries

    def rows(self, seed: int) -> Iterator[tuple[int, ...]]:
        """Yield for each turn the draw of the event and those of the persona, each of 64 bits."""
        bases = mix(seed ^ _EVENT_KEY) * self._events + mix(seed ^ POLICY_KEY) * self._policies
        return chain.from_iterable(self._block(bases, number) for number in count())

    def _block(self, bases: int, number: int) -> Iterable[tuple[int, ...]]:
        if number not in self._counters:
            self._counters[number] = self._compute_offsets(number * _BLOCK_TURNS + 1)
        full, (first, second) = self._full, MULTIPLIERS
        value = (bases + self._counters[number]) & full
        value = ((value ^ (value >> 30)) & full) * first & full
        value = ((value ^ (value >> 27)) & full) * second & full
        value ^= value >> 31  # bits above each number are not read
        return self._rows.iter_unpack(value.to_bytes(self._bytes, "little"))

    def _compute_offsets(self, turn: int) -> int:
        """Return the counter offset of each draw in a block of turns."""
        indices = [0, *range(self._width)]
        return _pack_lanes(
            [
                INCREMENT * ((now << 32) + index + 1) & _FULL
                for now in range(turn, turn + _BLOCK_TURNS)
                for index in indices
            ],
        )


def _pack_lanes(numbers: list[int]) -> int:
    return sum(number << (lane * _LANE_BITS) for lane, number in enumerate(numbers))


# Array capacities to try: larger ones abandon fewer runs, smaller ones lower the worst-case cost of a turn.
_CAPACITIES = (256, 64, 16)
# Personas that look ahead need copies of states, which only the interpreter has.
_COMPILED_PERSONAS = frozenset({"idle", "random"})
# Runs after which the share of abandoned runs decides whether generated code pays off.
_TRIAL_RUNS = 16


class RunAbandoned(Exception):  # noqa: N818 - not an error: the interpreter plays the run again
    """The run needs something that generated code cannot do."""


# Exceptions of generated code where, in the interpreter, a rule fails or might fail.
_ABANDONING_ERRORS = (RunAbandoned, EngineError, ArithmeticError, ValueError, IndexError)


def _limit_number(number: float) -> float:
    """Return a number if it is within the limit."""
    if -MAX_NUMBER <= number <= MAX_NUMBER:
        return number
    raise RunAbandoned


def _limit_text(text: str) -> str:
    """Return a text if it is within the limit."""
    if len(text.encode("utf-8")) > MAX_TEXT_BYTES:
        raise RunAbandoned
    return text


def _sum_in_order(numbers: Iterable[float]) -> float:
    """Add from left to right; the built-in sum rounds differently in newer versions of Python."""
    total = 0.0
    for number in numbers:
        total += number
    return total


# Names available to generated source, besides its constants.
SOURCE_NAMES = {
    "Deopt": RunAbandoned,
    "POLICY_KEY": POLICY_KEY,
    "as_number": to_number,
    "as_text": to_text,
    "brief": _limit_text,
    "draw": draw,
    "fmod": fmod,
    "held": _limit_number,
    "reduce": reduce,
    "substring": cut_text,
    "sum_of": _sum_in_order,
}


class CompiledRunners:
    """Players of a scenario by persona, each compiled on first use."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._runners: dict[str, CompiledRunner | None] = {}

    def get_runner(self, persona: str) -> CompiledRunner | None:
        """Return the player of a persona; None if the interpreter is preferable."""
        if persona not in _COMPILED_PERSONAS:
            return None
        if persona not in self._runners:
            self._runners[persona] = _compile_runner(self._rules, persona)
        player = self._runners[persona]
        return player if player and player.is_worthwhile else None


class CompiledRunner:
    """Compiled runs of a scenario under one persona.

    Attributes:
        source: the generated source.
        abandoned_runs: number of runs that were abandoned.
    """

    def __init__(self, rules: Rules, layout: SlotLayout, context: CodegenContext, persona: str) -> None:
        self._rules = rules
        self._slots = list(layout.slots.values())
        self._conditions = {"lost": rules.losses, "won": rules.wins}
        self.source, width = write_run(rules, layout, context, persona)
        self._draws = DrawBlocks(width)
        namespace = {**SOURCE_NAMES, **context.names}
        exec(compile(self.source, "<scenario>", "exec"), namespace)  # noqa: S102 - the source contains no text of a document
        self._play: Any = namespace["play"]
        self._runs = self.abandoned_runs = 0

    @property
    def is_worthwhile(self) -> bool:
        """True while most runs complete in generated code."""
        return self._runs < _TRIAL_RUNS or 2 * self.abandoned_runs < self._runs

    def play(self, seed: int, horizon: int) -> RunEnd | None:
        """Play a whole run; return None if the interpreter must play it."""
        if not 1 <= horizon <= MAX_TURNS:
            return None
        self._runs += 1
        try:
            outcome, number, turns, values = self._play(seed, horizon, self._draws.rows(seed))
        except _ABANDONING_ERRORS:
            self.abandoned_runs += 1
            return None
        condition = None if number is None else self._conditions[outcome][number]["id"]
        return RunEnd(outcome, condition, turns, partial(self._tree, values))

    def _tree(self, values: tuple[Any, ...]) -> bytes:
        """Return the final state tree, canonical."""
        root = {"state": copy.deepcopy(self._rules.initial)}
        for slot, value in zip(self._slots, values, strict=True):
            if value is not None or slot.initial is not MISSING:
                lookup(root, slot.path[:-1])[slot.path[-1]] = value
        return canonicalize(root["state"])


def _compile_runner(rules: Rules, persona: str) -> CompiledRunner | None:
    """Compile a scenario with the largest array capacity whose worst-case turn is within the limits."""
    for capacity in _CAPACITIES:
        try:
            layout = SlotLayout(rules)
            check_state_limits(rules, layout, capacity)
            attempt = CodegenContext(capacity)
            write_run(rules, layout, attempt, persona)
            return CompiledRunner(rules, layout, CodegenContext(capacity, attempt.compute_bounds()), persona)
        except (NotLoweredError, EngineError, SyntaxError, RecursionError, MemoryError):
            continue  # the last three: nesting beyond Python's compiler
    return None
