"""What a core is: the narrow door between `peripety.sim` and the two implementations of the engine.

Bytes in, bytes out: every document, state and result crosses as canonical JSON, so that both cores can be
compared to the byte and neither shares Python objects with its caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from peripety.sim.patterns.predicates import Predicate
    from peripety.sim.policies.types import ToolRequest

__all__ = [
    "Core",
    "CoreError",
    "CorePolicy",
    "CoreProgram",
    "CoreRequests",
    "CoreState",
    "Data",
    "PatternIndex",
    "PatternRow",
    "Refusal",
    "Rule",
    "Screened",
]

Refusal = Callable[[str, str, str], Exception]
"""Makes the exception for a refusal from its code, message and path, as `CoreError` does."""


class CoreError(Exception):
    """An operation that the engine refused.

    Attributes:
        code: stable UPPER_SNAKE reason, the same from both cores.
        message: one sentence, the same from both cores.
        path: where: a JSON Pointer, or empty.
    """

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path


class CoreState(Protocol):
    """One run of a scenario, somewhere in its life."""

    def fork(self) -> CoreState:
        """An independent copy."""

    def to_json(self) -> bytes:
        """Everything needed to go on from here, as canonical JSON."""

    def tree(self) -> bytes:
        """The scenario's own state tree, as canonical JSON."""

    def hash(self) -> str:
        """SHA-256 of the canonical state tree, in hex."""

    def completed(self) -> int:
        """How many turns are complete."""

    def standing(self) -> bytes:
        """Whether the run goes on, as the canonical JSON of a `Status`."""


class CoreProgram(Protocol):
    """A compiled scenario. The states it is given are its own core's."""

    def new_state(self, seed: int) -> CoreState:
        """The initial state under a seed (an unsigned 64-bit integer)."""

    def load_state(self, snapshot: bytes) -> CoreState:
        """A state from what `CoreState.to_json` gave."""

    def legal_actions(self, state: Any) -> bytes:
        """JSON list of the ids of the actions that could be taken now."""

    def act(self, state: Any, action_id: str, params: bytes) -> bytes:
        """Take an action; the JSON of an `ActResult`."""

    def narrate(self, state: Any, changes: bytes) -> bytes:
        """Apply the narrator's own changes, a list of `{op, path, value?}`; the JSON of an `ActResult`."""

    def step(self, state: Any) -> bytes:
        """Finish the turn; the JSON of a `StepResult`."""

    def roll(self, state: Any, request: bytes) -> bytes:
        """Roll in the current turn, `{kind, target?, difficulty}`; the JSON of a `RollResult`."""

    def dry_run(self, options: bytes) -> bytes:
        """Play many runs without a model; the JSON of a `DryRunReport`."""

    def futures(self, state: Any, options: bytes) -> bytes:
        """Play many runs that begin with a copy of a state; the JSON of a `DryRunReport`."""

    def proves_nothing(self, horizon: int) -> bool:
        """Whether it is known, at little cost, that there is nothing to prove within a horizon."""


class CoreRequests(Protocol):
    """Requests, read for the tools of one policy. Immutable; every thread may use it."""

    def __len__(self) -> int:
        """How many there are."""


class CorePolicy(Protocol):
    """A compiled policy. The requests it is given are its own core's, and read for the same tools."""

    def requests(self, requests: Sequence[bytes]) -> CoreRequests:
        """Requests, each from JSON `{server_name, tool_name, arguments, roles}` of those types.

        Every one passes the strict border, which raises `CoreError`.
        """

    def read(self, requests: Sequence[ToolRequest]) -> CoreRequests | None:
        """The same from the requests themselves; None where one might not be acceptable, or none is quicker.

        What is wrong with one, `requests` knows.
        """

    def decided(self, request: ToolRequest, /) -> int | None:
        """Who decides a request as it is, as `deciding` says it.

        None where it might not be acceptable, where conditions up to the deciding one could not be evaluated,
        or where this would not be quicker than to read it first.
        """

    def decided_each(self, requests: Sequence[ToolRequest], /) -> tuple[bytes, bytes] | None:
        """Who decides each of some requests as they are, and which ones are left, as `deciding` says it.

        Left are those of which `decided` would give None; who decides them, this does not say. None where all
        of them would be left.
        """

    def deciding(self, requests: Any) -> tuple[bytes, bytes]:
        """Who decides each request, and for which ones conditions could not be evaluated before that.

        The former are signed 32-bit integers, little-endian: an index into the invariants and rules, -1 for
        no rule, -2 for an unknown tool. The latter is a set of bits, bit `n % 8` of byte `n // 8` for
        request `n`.
        """

    def unevaluated(self, requests: Any, index: int) -> bytes:
        """The conditions up to the deciding one that could not be evaluated for a request, in order.

        The JSON of a list of `{rule, code, message, path}`: an index as above, and what was the matter.
        """

    def matches(self, requests: Any, rules: bytes | None) -> list[tuple[bytes, bytes]]:
        """For each rule of a JSON list, or of the policy, what it holds for, and what it fails for.

        Both are sets of bits as in `deciding`.
        """


class Screened(NamedTuple):
    """A document with which nothing is wrong.

    Attributes:
        document: its canonical form.
        program: the program that `Core.compile` makes of it.
        spec_hash: SHA-256 of the canonical form, in hex.
    """

    document: bytes
    program: CoreProgram
    spec_hash: str


class Data(Protocol):
    """Data that rules read, parsed once. Immutable; every thread may use it."""


class Rule(Protocol):
    """A JSONLogic expression, compiled once. Immutable; every thread may use it."""

    def evaluate(self, data: Any, /) -> Any:
        """The value of the expression over data.

        Args:
            data: what `peripety.sim.data` made, or anything that it takes.

        Returns:
            None, bool, int, float, str, or lists and dicts of them; a number is an int when it is a safe
            integer.

        Raises:
            PeripetyError: with the engine's code, such as `UNKNOWN_OPERATOR` or `DIVISION_BY_ZERO`.
        """


class PatternRow(NamedTuple):
    """A pattern, for an index: numbers of predicates, one for each text of a subject; None holds always.

    Attributes:
        predicates: for the text, the model and the tool result.
        anchor: which of them to find the pattern by: the one that holds most rarely; None if there is none.
        first: lowest number of earlier answers.
        last: highest number of earlier answers.
    """

    predicates: tuple[int | None, int | None, int | None]
    anchor: int | None
    first: int
    last: int


class PatternIndex(Protocol):
    """Many patterns as one index. Immutable; every thread may use it.

    Texts that are not Unicode are refused with `UnicodeEncodeError`.
    """

    def first(
        self, text: str, model: str, tool_result: str | None, message_index: int, skip: Container[int], /
    ) -> int | None:
        """The number of the first pattern that matches and is not to be skipped."""

    def matches(
        self, index: int, text: str, model: str, tool_result: str | None, message_index: int, /
    ) -> bool:
        """Whether one pattern matches."""


class Core(Protocol):
    """One implementation of the engine."""

    @property
    def name(self) -> str:
        """`native` or `python`."""

    @property
    def version(self) -> str:
        """Version of the implementation."""

    def parse(self, document: bytes) -> bytes:
        """The strict JSON border: canonical JSON of the document, or `CoreError`."""

    def evaluate(self, logic: bytes, data: bytes) -> bytes:
        """JSONLogic over JSON data; canonical JSON of the result, or `CoreError`."""

    def rule(self, logic: Any, refusal: Refusal) -> Rule:
        """A rule from Python objects, or from the JSON in a `bytes`; it raises what `refusal` makes."""

    def data(self, value: Any, refusal: Refusal) -> Data:
        """Data from Python objects, or from the JSON in a `bytes`, or what `refusal` makes."""

    def compile(self, document: bytes) -> CoreProgram:
        """A program from a document that has passed `peripety.sim.validate`."""

    def policy(self, document: bytes) -> CorePolicy:
        """A policy from a document in canonical form that has passed `peripety.sim.validate_policy`."""

    def screen(self, documents: Sequence[bytes], threads: int) -> list[Screened | None]:
        """Look through documents for those with which nothing is wrong, by threads that share the work.

        None says only that something is, or might be; `peripety.sim.validate` knows what.
        """

    def draw(self, seed: int, stream: str, turn: int, index: int) -> int:
        """One keyed 64-bit draw."""

    def run_seed(self, seed: int, run: int) -> int:
        """The seed of dry-run number `run`."""

    def patterns(self, predicates: Sequence[Sequence[Predicate]], rows: Sequence[PatternRow]) -> PatternIndex:
        """An index over patterns; the predicates of the texts, the models and the tool results."""
