"""Patterns as automata: linear-time matching in plain Python, and what static analysis walks through."""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum
from typing import TYPE_CHECKING

from peripety.sim.patterns.syntax import Assertion, Characters, Choice, Repeat, Sequence

if TYPE_CHECKING:
    from peripety.sim.patterns.syntax import Node

__all__ = ["Automaton", "State"]

MOST_STEPS_KEPT = 20_000
"""How many transitions an automaton remembers before it forgets them all and begins anew."""

_WORD_STARTS = tuple(map(ord, "0:A[_`a{"))  # where the characters of words begin and end


class Beside(Enum):
    """What stands before or after a place in a text; assertions look at nothing else."""

    EDGE = "edge"
    WORD = "word"
    OTHER = "other"


class State:
    """Where an automaton is after some text.

    Attributes:
        key: equal for states of one automaton from which the same follows.
        found: the tree was found already, whatever follows.
        dead: it will not be found, whatever follows.
    """

    __slots__ = ("before", "closures", "dead", "found", "key", "row", "threads")

    def __init__(self, threads: tuple[int, ...], before: Beside, *, found: bool) -> None:
        self.key = (threads, before, found)
        self.threads = threads
        self.before = before
        self.found = found
        self.dead = not found and not threads
        self.row: dict[str, State] = {}
        self.closures: dict[Beside, tuple[tuple[int, ...], bool]] = {}


class Automaton:
    """Finds a tree in texts, in time linear in the text. Every thread may use it.

    The tree becomes an NFA; texts are read by its DFA, which is made as far as texts lead, and forgotten when
    it has grown large.

    Attributes:
        starts: code points, in order; characters between the same two of them lead to the same states.
    """

    def __init__(self, tree: Node) -> None:
        self._following: dict[int, int] = {}  # of a state that takes a character
        self._sets: dict[int, Characters] = {}
        self._splits: dict[int, tuple[int, ...]] = {}
        self._assertions: dict[int, tuple[Assertion, int]] = {}
        self._end = 0
        self._size = 1
        self._begin = self._build(tree, self._end)
        self._sees_words = any(
            assertion in {Assertion.BOUNDARY, Assertion.NO_BOUNDARY}
            for assertion, _ in self._assertions.values()
        )
        self.starts = self._starts()
        self._takers: dict[int, frozenset[int]] = {}
        self._restarts = any(
            self._reach((self._begin,), before, after) != ((), False)
            for before in (Beside.WORD, Beside.OTHER)
            for after in Beside
        )
        self._states: dict[object, State] = {}
        self._kept = 0
        self.start = self._state((self._begin,), Beside.EDGE)

    def matches(self, text: str) -> bool:
        """Whether the tree is found in a text."""
        state = self.start
        for character in text:
            state = state.row.get(character) or self.step(state, character)
            if state.found:
                return True
            if state.dead:
                return False
        return self.accepts(state)

    def step(self, state: State, character: str) -> State:
        """The state after one more character."""
        following = state.row.get(character)
        if following is None:
            if self._kept >= MOST_STEPS_KEPT:
                # Who is still reading goes on with the old states; nobody else does.
                self._states, self._kept = {}, 0
                self.start = self._state((self._begin,), Beside.EDGE)
            self._kept += 1
            following = state.row[character] = self._after(state, character)
        return following

    def accepts(self, state: State) -> bool:
        """Whether the tree is found in the text that led here, if nothing follows."""
        return state.found or self._closure(state, Beside.EDGE)[1]

    # ---- the DFA

    def _after(self, state: State, character: str) -> State:
        if state.found or state.dead:
            return state
        symbol = bisect_right(self.starts, ord(character)) - 1
        kind = self._kind(symbol)
        threads, found = self._closure(state, kind)
        if found:
            return self._state((), kind, found=True)
        takers = self._takers_of(symbol)
        following = {self._following[thread] for thread in threads if thread in takers}
        if self._restarts:
            following.add(self._begin)
        return self._state(tuple(sorted(following)), kind)

    def _state(self, threads: tuple[int, ...], before: Beside, *, found: bool = False) -> State:
        state = State(threads, before, found=found)
        return self._states.setdefault(state.key, state)

    def _kind(self, symbol: int) -> Beside:
        character = chr(self.starts[symbol])
        is_word = character.isascii() and (character.isalnum() or character == "_")
        return Beside.WORD if self._sees_words and is_word else Beside.OTHER

    def _takers_of(self, symbol: int) -> frozenset[int]:
        """The states of the NFA that take a symbol."""
        takers = self._takers.get(symbol)
        if takers is None:
            code = self.starts[symbol]
            takers = self._takers[symbol] = frozenset(
                number
                for number, characters in self._sets.items()
                if any(first <= code <= last for first, last in characters.ranges)
            )
        return takers

    def _closure(self, state: State, after: Beside) -> tuple[tuple[int, ...], bool]:
        closure = state.closures.get(after)
        if closure is None:
            closure = state.closures[after] = self._reach(state.threads, state.before, after)
        return closure

    def _reach(self, threads: tuple[int, ...], before: Beside, after: Beside) -> tuple[tuple[int, ...], bool]:
        """The states that wait for a character, from here without one, and whether the end is reached."""
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
                onward = (following,) if _holds(assertion, before, after) else ()
            for following in onward:
                if following not in seen:
                    seen.add(following)
                    pending.append(following)
        return tuple(waiting), self._end in seen

    # ---- the NFA

    def _build(self, tree: Node, following: int) -> int:
        """Add a tree with what follows it; the number of the state in which it begins."""
        match tree:
            case Characters():
                begin = self._number()
                self._sets[begin], self._following[begin] = tree, following
                return begin
            case Assertion():
                begin = self._number()
                self._assertions[begin] = (tree, following)
                return begin
            case Sequence(parts):
                for part in reversed(parts):
                    following = self._build(part, following)
                return following
            case Choice(options):
                begin = self._number()
                self._splits[begin] = tuple(self._build(option, following) for option in options)
                return begin
            case Repeat(node, least, most):
                return self._repeat(node, least, most, following)

    def _repeat(self, node: Node, least: int, most: int | None, following: int) -> int:
        end = following
        if most is None:
            loop = self._number()
            begin = self._build(node, loop)
            self._splits[loop] = (begin, end)
            # What is repeated once at least is not written twice: nested so, it would double each time.
            following, least, most = (begin, least - 1, least - 1) if least else (loop, 0, 0)
        for _ in range((most or least) - least):
            begin = self._number()
            self._splits[begin] = (self._build(node, following), end)
            following = begin
        for _ in range(least):
            following = self._build(node, following)
        return following

    def _number(self) -> int:
        self._size += 1
        return self._size - 1

    def _starts(self) -> list[int]:
        starts = {0, *(_WORD_STARTS if self._sees_words else ())}
        for characters in {*self._sets.values()}:
            for first, last in characters.ranges:
                starts |= {first, last + 1}
        return sorted(starts)


def _holds(assertion: Assertion, before: Beside, after: Beside) -> bool:
    match assertion:
        case Assertion.START:
            return before is Beside.EDGE
        case Assertion.END:
            return after is Beside.EDGE
        case Assertion.BOUNDARY:
            return (before is Beside.WORD) != (after is Beside.WORD)
        case Assertion.NO_BOUNDARY:
            return (before is Beside.WORD) == (after is Beside.WORD)
