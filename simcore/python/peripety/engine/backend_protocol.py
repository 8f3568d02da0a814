"""Protocol of an engine backend: bytes in, bytes out.

A backend is one implementation of the engine, in Rust (`_native`) or in plain Python (`_reference`).
Everything above this protocol (validation, result types, abstract interpretation, visibility) exists once,
in Python, and works with either.

Design:

- Documents, states, options and results are canonical JSON. So two backends can be compared to the byte,
  neither shares mutable objects with the caller, and a result can be stored or hashed without another
  encoding.
- A backend never formats findings for documents. It reports errors as `EngineError` with code, message and
  path; both backends use the same texts, and the golden vectors in tests/conformance compare them.
- Results for many inputs are packed (bit sets, 32-bit integers) because one Python object per request would
  cost more than the decision itself.
- Some calls are optional shortcuts: they return None to mean "use the general call". A shortcut may never
  differ from the general call in its result.
- One call covers a turn or a whole dry-run, so the cost of crossing the border does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from peripety.engine.patterns.predicates import Predicate
    from peripety.engine.policies.types import ToolRequest


ErrorFactory = Callable[[str, str, str], Exception]
"""Builds an exception from the code, message and path of an error, as `EngineError` does."""


class EngineError(Exception):
    """Operation that the engine rejected.

    Attributes:
        code: stable UPPER_SNAKE reason, equal in both backends.
        message: one sentence, equal in both backends.
        path: JSON Pointer of the cause, or empty.
    """

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path


class BackendState(Protocol):
    """State of one run of a scenario."""

    def fork(self) -> BackendState:
        """Return an independent copy."""

    def to_json(self) -> bytes:
        """Return the snapshot that resumes the run, as canonical JSON."""

    def tree(self) -> bytes:
        """Return the state tree of the scenario, as canonical JSON."""

    def hash(self) -> str:
        """Return the SHA-256 of the canonical state tree, in hex."""

    def completed_turns(self) -> int:
        """Return the number of completed turns."""

    def status_json(self) -> bytes:
        """Return the canonical JSON of a `Status`."""


class BackendProgram(Protocol):
    """Compiled scenario. It accepts only states of the same backend."""

    def new_state(self, seed: int) -> BackendState:
        """Return the initial state for a seed (an unsigned 64-bit integer)."""

    def load_state(self, snapshot: bytes) -> BackendState:
        """Restore a state from the result of `BackendState.to_json`."""

    def legal_actions(self, state: Any) -> bytes:
        """Return the JSON list of the ids of the legal actions."""

    def act(self, state: Any, action_id: str, params: bytes) -> bytes:
        """Perform an action; return the JSON of an `ActResult`."""

    def narrate(self, state: Any, changes: bytes) -> bytes:
        """Apply the narrator's changes, a list of `{op, path, value?}`; return the JSON of an `ActResult`."""

    def step(self, state: Any) -> bytes:
        """Finish the turn; return the JSON of a `StepResult`."""

    def roll(self, state: Any, request: bytes) -> bytes:
        """Roll in the current turn, `{kind, target?, difficulty}`; return the JSON of a `RollResult`."""

    def dry_run(self, options: bytes) -> bytes:
        """Simulate many runs without a model; return the JSON of a `DryRunReport`."""

    def simulate_from(self, state: Any, options: bytes) -> bytes:
        """Simulate many runs that begin with a copy of a state; return the JSON of a `DryRunReport`."""

    def has_nothing_to_prove(self, horizon: int) -> bool:
        """Return True if a cheap test shows that there is nothing to prove within a horizon."""


class BackendRequests(Protocol):
    """Tool requests, prepared for the tools of one policy. Immutable and thread-safe."""

    def __len__(self) -> int:
        """Return the number of requests."""


class BackendPolicy(Protocol):
    """Compiled policy. It accepts only requests that the same backend prepared for the same tools."""

    def parse_requests(self, requests: Sequence[bytes]) -> BackendRequests:
        """Parse requests, each from JSON `{server_name, tool_name, arguments, roles}`.

        Each passes the strict parser, which raises `EngineError`.
        """

    def prepare(self, requests: Sequence[ToolRequest]) -> BackendRequests | None:
        """Prepare request objects directly; return None if one may be invalid, or if `requests` is as fast.

        `requests` then reports the error.
        """

    def decide_one(self, request: ToolRequest, /) -> int | None:
        """Return the deciding rule of one request, encoded as in `deciding`.

        None if the request may be invalid, if a condition up to the deciding rule could not be evaluated, or
        if preparing the request first is as fast.
        """

    def decide_many_fast(self, requests: Sequence[ToolRequest], /) -> tuple[bytes, bytes] | None:
        """Return the deciding rules of some requests, and the set of unresolved requests.

        Both are encoded as in `deciding`. Unresolved are those for which `decided` returns None; their
        entries in the first result have no meaning. None if all are unresolved.
        """

    def decide_many(self, requests: Any) -> tuple[bytes, bytes]:
        """Return the deciding rule of each request, and the requests with conditions that failed before it.

        The former are signed 32-bit integers, little-endian: an index into the invariants and rules, -1 for
        no rule, -2 for an unknown tool. The latter is a bit set: bit `n % 8` of byte `n // 8` for request
        `n`.
        """

    def explain_errors(self, requests: Any, index: int) -> bytes:
        """Return the conditions up to the deciding rule that could not be evaluated for a request, in order.

        The JSON of a list of `{rule, code, message, path}`: an index as in `deciding`, and the error.
        """

    def match_rules(self, requests: Any, rules: bytes | None) -> list[tuple[bytes, bytes]]:
        """Return for each rule the requests that it matches, and those for which it fails.

        The rules are those of a JSON list, or of the policy. Both results are bit sets as in `deciding`.
        """


class ValidatedSpec(NamedTuple):
    """Document without findings.

    Attributes:
        document: its canonical form.
        program: its compiled program, as from `Backend.compile`.
        spec_hash: SHA-256 of the canonical form, in hex.
    """

    document: bytes
    program: BackendProgram
    spec_hash: str


class RuleData(Protocol):
    """Data for rules, parsed once. Immutable and thread-safe."""


class CompiledRule(Protocol):
    """Compiled JSONLogic expression. Immutable and thread-safe."""

    def evaluate(self, data: Any, /) -> Any:
        """Evaluate the expression over data.

        Args:
            data: a result of `peripety.engine.parse_data`, or anything that function accepts.

        Returns:
            None, bool, int, float, str, or lists and dicts of them; a number is an int if it is a safe
            integer.

        Raises:
            PeripetyError: with the engine's code, such as `UNKNOWN_OPERATOR` or `DIVISION_BY_ZERO`.
        """


class PatternRow(NamedTuple):
    """Row of a pattern index: one predicate number for each text of a subject; None always matches.

    Attributes:
        predicates: for the text, the model and the tool result.
        anchor: the most selective of them, by which the index finds the row; None without any.
        first: lowest number of earlier answers.
        last: highest number of earlier answers.
    """

    predicates: tuple[int | None, int | None, int | None]
    anchor: int | None
    first: int
    last: int


class PatternIndex(Protocol):
    """Index over many patterns. Immutable and thread-safe.

    Texts that are not valid Unicode raise `UnicodeEncodeError`.
    """

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


class Backend(Protocol):
    """One implementation of the engine."""

    @property
    def name(self) -> str:
        """`native` or `python`."""

    @property
    def version(self) -> str:
        """Version of the implementation."""

    def parse(self, document: bytes) -> bytes:
        """Parse a document strictly; return its canonical JSON, or raise `EngineError`."""

    def evaluate(self, logic: bytes, data: bytes) -> bytes:
        """Evaluate JSONLogic over JSON data; return canonical JSON, or raise `EngineError`."""

    def compile_rule(self, logic: Any, make_error: ErrorFactory) -> CompiledRule:
        """Compile a rule from Python objects, or from the JSON in a `bytes`; `refusal` builds its errors."""

    def parse_data(self, value: Any, make_error: ErrorFactory) -> RuleData:
        """Parse data from Python objects, or from the JSON in a `bytes`; errors are built by `refusal`."""

    def compile(self, document: bytes) -> BackendProgram:
        """Compile a document that has passed `peripety.engine.validate`."""

    def compile_policy(self, document: bytes) -> BackendPolicy:
        """Compile a policy in canonical form that has passed `peripety.engine.validate_policy`."""

    def validate_many(self, documents: Sequence[bytes], threads: int) -> list[ValidatedSpec | None]:
        """Validate and compile many documents on several threads.

        None means that a document has findings, or may have; `peripety.engine.validate` reports them.
        """

    def draw(self, seed: int, stream: str, turn: int, index: int) -> int:
        """Return one keyed 64-bit draw."""

    def run_seed(self, seed: int, run: int) -> int:
        """Return the seed of dry-run number `run`."""

    def build_pattern_index(
        self,
        predicates: Sequence[Sequence[Predicate]],
        rows: Sequence[PatternRow],
    ) -> PatternIndex:
        """Build an index over patterns.

        `predicates` are those of the texts, of the models and of the tool results.
        """
