"""Pattern matching by finite automata: a Thompson NFA with a lazily built DFA.

Matching takes time linear in the text, for every pattern, in plain Python. The static analysis of scripts
walks through the DFA as well.

Why automata: patterns come from files that users share, and a backtracking engine (`re`) needs exponential
time for some of them. The Rust backend uses the crate `regex`, which has the same guarantee; both match the
same language, because the syntax is restricted to constructs without engine-specific meaning (`syntax`).

Design:

- A tree is compiled to an NFA whose states either take a character of a set, branch, or assert something
  about the neighbouring characters (start, end, word boundary). Counted repetitions are expanded, within
  the limit of the syntax.
- Assertions depend on the class of the previous and the next character only. So a DFA state is a set of NFA
  states plus the class of the last character.
- Code points are grouped into intervals that all sets treat alike (`starts`). A transition is computed once
  for each character that occurs, and cached.
- The cache is bounded: at `MAX_CACHED_TRANSITIONS` transitions the DFA is discarded and built again. A
  reader in progress holds references to old states and stays correct.
- A search is unanchored: the start state is added again before each character, unless the pattern is
  anchored to the start.

Threads may share an automaton without a lock: a transition that two of them compute is the same.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum
from typing import TYPE_CHECKING

from peripety.engine.patterns.syntax import Alternation, Assertion, Characters, Concatenation, Repeat

if TYPE_CHECKING:
    from peripety.engine.patterns.syntax import Node


MAX_CACHED_TRANSITIONS = 20_000
"""Transitions that an automaton caches before it discards them all."""

_WORD_STARTS = tuple(map(ord, "0:A[_`a{"))  # code points at which the class of word characters starts or ends


class Lookaround(Enum):
    """Class of the character before or after a position; assertions depend on nothing else."""

    EDGE = "edge"
    WORD = "word"
    OTHER = "other"


class DfaState:
    """State of the DFA after a prefix of a text.

    Attributes:
        key: equal for equivalent states of one automaton.
        found: the pattern has been found, whatever follows.
        dead: the pattern cannot be found any more.
    """

    __slots__ = ("before", "closures", "dead", "found", "key", "row", "threads")

    def __init__(self, threads: tuple[int, ...], before: Lookaround, *, found: bool) -> None:
        self.key = (threads, before, found)
        self.threads = threads
        self.before = before
        self.found = found
        self.dead = not found and not threads
        self.row: dict[str, DfaState] = {}
        self.closures: dict[Lookaround, tuple[tuple[int, ...], bool]] = {}


class Automaton:
    """Linear-time search for a pattern. Thread-safe.

    Attributes:
        class_starts: code points in order; characters between two neighbours have the same transitions.
    """

    def __init__(self, tree: Node) -> None:
        self._following: dict[int, int] = {}  # by the number of an NFA state that takes a character
        self._sets: dict[int, Characters] = {}
        self._splits: dict[int, tuple[int, ...]] = {}
        self._assertions: dict[int, tuple[Assertion, int]] = {}
        self._end = 0
        self._size = 1
        self._begin = self._build(tree, self._end)
        self._uses_word_boundaries = any(
            assertion in {Assertion.BOUNDARY, Assertion.NO_BOUNDARY}
            for assertion, _ in self._assertions.values()
        )
        self.class_starts = self._find_class_starts()
        self._takers: dict[int, frozenset[int]] = {}
        self._is_unanchored = any(
            self._reach((self._begin,), before, after) != ((), False)
            for before in (Lookaround.WORD, Lookaround.OTHER)
            for after in Lookaround
        )
        self._states: dict[object, DfaState] = {}
        self._cached_transitions = 0
        self.start_state = self._intern_state((self._begin,), Lookaround.EDGE)

    def matches(self, text: str) -> bool:
        """Return True if the text contains a match."""
        state = self.start_state
        for character in text:
            state = state.row.get(character) or self.step(state, character)
            if state.found:
                return True
            if state.dead:
                return False
        return self.accepts(state)

    def step(self, state: DfaState, character: str) -> DfaState:
        """Return the state after one more character."""
        following = state.row.get(character)
        if following is None:
            if self._cached_transitions >= MAX_CACHED_TRANSITIONS:
                # A search in progress continues with the old states, which remain valid.
                self._states, self._cached_transitions = {}, 0
                self.start_state = self._intern_state((self._begin,), Lookaround.EDGE)
            self._cached_transitions += 1
            following = state.row[character] = self._compute_step(state, character)
        return following

    def accepts(self, state: DfaState) -> bool:
        """Return True if the text up to this state contains a match, given that the text ends."""
        return state.found or self._closure(state, Lookaround.EDGE)[1]

    # ---- DFA

    def _compute_step(self, state: DfaState, character: str) -> DfaState:
        if state.found or state.dead:
            return state
        symbol = bisect_right(self.class_starts, ord(character)) - 1
        kind = self._classify(symbol)
        threads, found = self._closure(state, kind)
        if found:
            return self._intern_state((), kind, found=True)
        takers = self._find_takers(symbol)
        following = {self._following[thread] for thread in threads if thread in takers}
        if self._is_unanchored:
            following.add(self._begin)
        return self._intern_state(tuple(sorted(following)), kind)

    def _intern_state(self, threads: tuple[int, ...], before: Lookaround, *, found: bool = False) -> DfaState:
        state = DfaState(threads, before, found=found)
        return self._states.setdefault(state.key, state)

    def _classify(self, symbol: int) -> Lookaround:
        character = chr(self.class_starts[symbol])
        is_word = character.isascii() and (character.isalnum() or character == "_")
        return Lookaround.WORD if self._uses_word_boundaries and is_word else Lookaround.OTHER

    def _find_takers(self, symbol: int) -> frozenset[int]:
        """Return the NFA states that take a symbol."""
        takers = self._takers.get(symbol)
        if takers is None:
            code = self.class_starts[symbol]
            takers = self._takers[symbol] = frozenset(
                number
                for number, characters in self._sets.items()
                if any(first <= code <= last for first, last in characters.ranges)
            )
        return takers

    def _closure(self, state: DfaState, after: Lookaround) -> tuple[tuple[int, ...], bool]:
        closure = state.closures.get(after)
        if closure is None:
            closure = state.closures[after] = self._reach(state.threads, state.before, after)
        return closure

    def _reach(
        self,
        threads: tuple[int, ...],
        before: Lookaround,
        after: Lookaround,
    ) -> tuple[tuple[int, ...], bool]:
        """Return the character-taking states reachable without a character, and if the end is reachable."""
        waiting: list[int] = []
        seen, pending = set(threads), [*threads]
        while pending:
            number = pending.pop()
            onward: tuple[int, ...] = ()
            if number in self._following:
                waiting.append(number)
            elif number in self._splits:
                onward = self._splits[number]
            elif number in self._assertions:
                assertion, following = self._assertions[number]
                onward = (following,) if _is_satisfied(assertion, before, after) else ()
            for following in onward:
                if following not in seen:
                    seen.add(following)
                    pending.append(following)
        return tuple(waiting), self._end in seen

    # ---- NFA

    def _build(self, tree: Node, following: int) -> int:
        """Add a subtree with its continuation; return the number of its first state."""
        match tree:
            case Characters():
                begin = self._new_number()
                self._sets[begin], self._following[begin] = tree, following
                return begin
            case Assertion():
                begin = self._new_number()
                self._assertions[begin] = (tree, following)
                return begin
            case Concatenation(parts):
                for part in reversed(parts):
                    following = self._build(part, following)
                return following
            case Alternation(options):
                begin = self._new_number()
                self._splits[begin] = tuple(self._build(option, following) for option in options)
                return begin
            case Repeat(node, least, most):
                return self._repeat(node, least, most, following)

    def _repeat(self, node: Node, least: int, most: int | None, following: int) -> int:
        end = following
        if most is None:
            loop = self._new_number()
            begin = self._build(node, loop)
            self._splits[loop] = (begin, end)
            # The loop reuses the last mandatory copy: a separate copy would double nested repetitions at each
            # level.
            following, least, most = (begin, least - 1, least - 1) if least else (loop, 0, 0)
        for _ in range((most or least) - least):
            begin = self._new_number()
            self._splits[begin] = (self._build(node, following), end)
            following = begin
        for _ in range(least):
            following = self._build(node, following)
        return following

    def _new_number(self) -> int:
        self._size += 1
        return self._size - 1

    def _find_class_starts(self) -> list[int]:
        starts = {0, *(_WORD_STARTS if self._uses_word_boundaries else ())}
        for characters in {*self._sets.values()}:
            for first, last in characters.ranges:
                starts |= {first, last + 1}
        return sorted(starts)


def _is_satisfied(assertion: Assertion, before: Lookaround, after: Lookaround) -> bool:
    match assertion:
        case Assertion.START:
            return before is Lookaround.EDGE
        case Assertion.END:
            return after is Lookaround.EDGE
        case Assertion.BOUNDARY:
            return (before is Lookaround.WORD) != (after is Lookaround.WORD)
        case Assertion.NO_BOUNDARY:
            return (before is Lookaround.WORD) == (after is Lookaround.WORD)
