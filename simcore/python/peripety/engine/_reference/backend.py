"""Reference implementation of the engine in plain Python, as a `Backend`.

It is the yardstick for the native backend, which must equal it byte for byte. So it is written for clarity,
without optimisation. The one exception is `codegen`, a code generator that speeds up dry-runs with the same
results.

The pattern index tries a pattern only where a part of a required literal occurs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from peripety.engine import rng, strict_json
from peripety.engine._reference.codegen.runner import CompiledRunners
from peripety.engine._reference.dry_run import dry_run, simulate_from
from peripety.engine._reference.effects import CallTrace
from peripety.engine._reference.jsonlogic import ReferenceData, ReferenceRule, evaluate
from peripety.engine._reference.policy import ReferencePolicy
from peripety.engine._reference.state import ReferenceState, Rules
from peripety.engine._reference.turn import PersonaDraws, act, deal, legal_choices, narrate, roll, step
from peripety.engine.backend_protocol import EngineError
from peripety.engine.canonical_json import canonicalize
from peripety.version import __version__

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from peripety.engine.backend_protocol import ErrorFactory, PatternRow, ValidatedSpec
    from peripety.engine.patterns.predicates import Predicate


_PART_LENGTHS = (8, 4, 2, 1)  # lengths of literal parts to search for, in characters
_MAX_SEPARATE_SEARCHES = 16  # up to this number of parts, each is searched for separately


class ReferencePatternIndex:
    """`PatternIndex` in Python."""

    def __init__(self, predicates: Sequence[Sequence[Predicate]], rows: Sequence[PatternRow]) -> None:
        self._predicates = predicates
        self._rows = rows
        self._unanchored = [number for number, row in enumerate(rows) if row.anchor is None]
        self._fields = [_FieldIndex(known, rows, field) for field, known in enumerate(predicates)]

    def first(
        self,
        text: str,
        model: str,
        tool_result: str | None,
        message_index: int,
        skip: Container[int],
        /,
    ) -> int | None:
        """Return the number of the first pattern that matches and is not in `skip`."""
        subject = _Subject(self._predicates, (text, model, tool_result), message_index)
        candidates = {*self._unanchored}
        for field, given, folded in zip(self._fields, subject.texts, subject.folded, strict=True):
            if given is not None and folded is not None:
                candidates.update(field.candidates(given, folded))
        for number in sorted(candidates):
            if number not in skip and subject.matches(self._rows[number]):
                return number
        return None

    def matches(
        self,
        index: int,
        text: str,
        model: str,
        tool_result: str | None,
        message_index: int,
        /,
    ) -> bool:
        """Return True if one pattern matches."""
        subject = _Subject(self._predicates, (text, model, tool_result), message_index)
        return subject.matches(self._rows[index])


class _Subject:
    """Subject of a match, with cached results of predicates."""

    def __init__(
        self,
        predicates: Sequence[Sequence[Predicate]],
        texts: tuple[str | None, ...],
        message_index: int,
    ) -> None:
        self.texts = texts
        self.folded = [None if text is None else _fold(text) for text in texts]
        self._predicates = predicates
        self._message_index = message_index
        self._known: dict[tuple[int, int], bool] = {}

    def matches(self, row: PatternRow) -> bool:
        return row.first <= self._message_index <= row.last and all(
            number is None or self._predicate_matches(field, number)
            for field, number in enumerate(row.predicates)
        )

    def _predicate_matches(self, field: int, number: int) -> bool:
        holds = self._known.get((field, number))
        if holds is None:
            text, folded = self.texts[field], self.folded[field]
            holds = (
                text is not None
                and folded is not None
                and self._predicates[field][number].matches(text, folded)
            )
            self._known[field, number] = holds
        return holds


def _fold(text: str) -> str:
    return text.encode("utf-8").lower().decode("utf-8")


class _FieldIndex:
    """Patterns that are found by one of the texts."""

    def __init__(self, predicates: Sequence[Predicate], rows: Sequence[PatternRow], field: int) -> None:
        self._equal: dict[str, list[int]] = defaultdict(list)
        self._equal_folded: dict[str, list[int]] = defaultdict(list)
        self._rest: list[int] = []
        by_literal: dict[str, list[int]] = defaultdict(list)
        for number, row in enumerate(rows):
            found_by = row.predicates[field]
            if row.anchor != field or found_by is None:
                continue
            predicate = predicates[found_by]
            if predicate.is_whole:
                (self._equal_folded if predicate.is_folded else self._equal)[predicate.text].append(number)
            elif predicate.literals is None:
                self._rest.append(number)
            else:
                for literal in predicate.literals:
                    by_literal[literal].append(number)
        self._parts = _group_by_rarest_part(by_literal)

    def candidates(self, text: str, folded: str) -> Iterator[int]:
        """Yield the patterns that may match a text, possibly with repetitions."""
        yield from self._equal.get(text, ())
        yield from self._equal_folded.get(folded, ())
        yield from self._rest
        for length, parts in self._parts.items():
            for part in _find_occurring(parts, length, folded):
                yield from parts[part]


def _group_by_rarest_part(by_literal: dict[str, list[int]]) -> dict[int, dict[str, list[int]]]:
    """Group patterns by the rarest part of each of their literals, by its length."""
    common = Counter(part for literal in by_literal for part in {*_split_literal(literal)})
    parts: dict[int, dict[str, list[int]]] = {}
    for literal, numbers in by_literal.items():
        rarest = min(_split_literal(literal), key=common.__getitem__)
        parts.setdefault(len(rarest), {}).setdefault(rarest, []).extend(numbers)
    return parts


def _split_literal(literal: str) -> list[str]:
    length = next(length for length in _PART_LENGTHS if length <= len(literal))
    return [literal[start : start + length] for start in range(len(literal) - length + 1)]


def _find_occurring(parts: dict[str, list[int]], length: int, text: str) -> Iterable[str]:
    if len(parts) <= _MAX_SEPARATE_SEARCHES:
        return [part for part in parts if part in text]
    return parts.keys() & {text[start : start + length] for start in range(len(text) - length + 1)}


class ReferenceProgram:
    """Validated scenario document, ready to run."""

    def __init__(self, document: bytes) -> None:
        self._rules = Rules(document)
        self._runners = CompiledRunners(self._rules)

    def new_state(self, seed: int) -> ReferenceState:
        """Return the initial state for a seed."""
        return deal(ReferenceState.initial(self._rules, seed))

    def load_state(self, snapshot: bytes) -> ReferenceState:
        """Restore a state from its snapshot."""
        return ReferenceState.from_json(self._rules, snapshot)

    def legal_actions(self, state: ReferenceState) -> bytes:
        """Return the ids of the legal actions, as a JSON list."""
        choices = legal_choices(state, PersonaDraws(state), CallTrace())
        return canonicalize([action["id"] for action, _ in choices])

    def act(self, state: ReferenceState, action_id: str, params: bytes) -> bytes:
        """Perform an action; return the JSON of an `ActResult`."""
        return canonicalize(act(state, action_id, strict_json.parse_canonical(params)))

    def narrate(self, state: ReferenceState, changes: bytes) -> bytes:
        """Apply the narrator's changes; return the JSON of an `ActResult`."""
        return canonicalize(narrate(state, strict_json.parse_canonical(changes)))

    def step(self, state: ReferenceState) -> bytes:
        """Finish the turn; return the JSON of a `StepResult`."""
        return canonicalize(step(state))

    def roll(self, state: ReferenceState, request: bytes) -> bytes:
        """Roll in the current turn; return the JSON of a `RollResult`."""
        return canonicalize(roll(state, strict_json.parse_canonical(request)))

    def dry_run(self, options: bytes) -> bytes:
        """Simulate many runs; return the JSON of a `DryRunReport`."""
        return canonicalize(dry_run(self._rules, strict_json.parse_canonical(options), self._runners))

    def simulate_from(self, state: ReferenceState, options: bytes) -> bytes:
        """Simulate many runs from a state; return the JSON of a `DryRunReport`."""
        return canonicalize(simulate_from(state, strict_json.parse_canonical(options)))

    def has_nothing_to_prove(self, _horizon: int) -> bool:
        """Return False: the reference has no cheap test."""
        return False


class ReferenceBackend:
    """Backend in plain Python, always available."""

    name = "python"
    version = __version__

    def parse(self, document: bytes) -> bytes:
        """Parse strictly."""
        return canonicalize(strict_json.parse(document))

    def evaluate(self, logic: bytes, data: bytes) -> bytes:
        """Evaluate JSONLogic over JSON data."""
        return canonicalize(evaluate(strict_json.parse_canonical(logic), strict_json.parse_canonical(data)))

    def compile_rule(self, logic: Any, make_error: ErrorFactory) -> ReferenceRule:
        """Compile a rule."""
        return ReferenceRule(logic, make_error)

    def parse_data(self, value: Any, make_error: ErrorFactory) -> ReferenceData:
        """Parse data for rules."""
        return ReferenceData(value, make_error)

    def compile(self, document: bytes) -> ReferenceProgram:
        """Compile a validated document."""
        try:
            return ReferenceProgram(document)
        except (KeyError, TypeError, AttributeError):
            raise EngineError("SPEC_INVALID", "the document is not a valid scenario") from None

    def compile_policy(self, document: bytes) -> ReferencePolicy:
        """Compile a validated policy."""
        return ReferencePolicy(document)

    def validate_many(self, documents: Sequence[bytes], threads: int) -> list[ValidatedSpec | None]:  # noqa: ARG002 - single-threaded
        """Accept no document, so that each one passes the full validation."""
        return [None] * len(documents)

    def draw(self, seed: int, stream: str, turn: int, index: int) -> int:
        """Return one keyed 64-bit draw."""
        return rng.draw(seed, rng.stream_key(stream), turn, index)

    def run_seed(self, seed: int, run: int) -> int:
        """Return the seed of a dry-run."""
        return rng.run_seed(seed, run)

    def build_pattern_index(
        self,
        predicates: Sequence[Sequence[Predicate]],
        rows: Sequence[PatternRow],
    ) -> ReferencePatternIndex:
        """Build an index over patterns."""
        return ReferencePatternIndex(predicates, rows)
