"""Questions for every SDK and the expected results: one table for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from conformance.simulator.observation import Counts
from peripety.engine.patterns.syntax import Pattern, TextKind, TextPattern
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.script.types import (
    Fault,
    Pace,
    Script,
    ScriptedCall,
    ScriptedUsage,
    ScriptResponse,
    ScriptRule,
    ScriptTurn,
)
from peripety.llmsim.types import SimStopReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


# Numbers of bytes of a stream that are written at once; None writes each chunk whole.
SIZES: tuple[int | None, ...] = (None, 1, 2, 3, 7, 64)

TOOL: dict[str, Any] = {
    "name": "look",
    "description": "Look at something.",
    "schema": {
        "type": "object",
        "properties": {"at": {"type": "string"}, "depth": {"type": "integer"}},
        "required": ["at"],
    },
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"label": {"type": "string"}, "amounts": {"type": "array", "items": {"type": "integer"}}},
    "required": ["label", "amounts"],
    "additionalProperties": False,
}


class Mode(Enum):
    """Mode of a call: streamed or not, synchronous or asynchronous."""

    WHOLE = "whole"
    STREAMED = "streamed"
    ASYNC_WHOLE = "async whole"
    ASYNC_STREAMED = "async streamed"

    @property
    def streams(self) -> bool:
        """Return True if the answer is streamed."""
        return self in {Mode.STREAMED, Mode.ASYNC_STREAMED}

    @property
    def is_async(self) -> bool:
        """Return True if the call is asynchronous."""
        return self in {Mode.ASYNC_WHOLE, Mode.ASYNC_STREAMED}


class Contract(Enum):
    """Required result of an answer with an injected failure."""

    RIGHT = "right"  # the caller has to see what was scripted
    RAISES = "raises"  # the SDK has to raise an exception
    UNNOTICED = "unnoticed"  # the failure cannot be detected; the result is recorded


@dataclass(frozen=True)
class Question:
    """A request that a driver has to send.

    Attributes:
        prompt: text of the user.
        tools: whether `TOOL` is offered.
        structured: whether the answer has to follow `SCHEMA`; then the SDK's own helper reads it too.
        reasoning: whether the model's thoughts are requested.
        max_tokens: the most output tokens.
        stop: texts that end the answer.
        results: results of the called tools; then the answer to them counts.
        retries: number of retries by the SDK.
        patience: timeout of the SDK in seconds.
    """

    prompt: str
    tools: bool = False
    structured: bool = False
    reasoning: bool = False
    max_tokens: int = 4000
    stop: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    retries: int = 0
    patience: float = 20.0


@dataclass(frozen=True)
class Expected:
    """Expected result; fields are those of `Observation`, but `stop` is the simulator's own word."""

    text: str = ""
    calls: Sequence[tuple[str, Any]] = ()
    reasoning: str = ""
    refusal: str = ""
    stop: SimStopReason = SimStopReason.END
    counts: Counts = field(default_factory=Counts)
    parsed: Any = None


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes:
        name: its title.
        response: the scripted answer.
        failure: the injected failure.
        turns: turns that follow the answer.
        `asked`: fields of the request, as in `Question`.
        expected: the expected result without a failure.
        contract: the required result.
        sizes: numbers of bytes of the pieces in which its stream is written.
        races: whether a reset may overtake data that was sent before it: then the exception depends on
            timing.
        note: more about it, for the published table.
    """

    name: str
    response: ScriptResponse | None = None
    failure: Fault | None = None
    turns: tuple[ScriptTurn, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    expected: Expected = Expected()
    contract: Contract = Contract.RIGHT
    sizes: Sequence[int | None] = SIZES
    races: bool = False
    note: str = ""

    def question(self, size: int | None, mode: Mode) -> Question:
        """Return the request of the case in pieces of this size; every mode has a conversation of its own."""
        return Question(f"{self._entry(size)}/{mode.value}", **self.asked)

    def sizes_in(self, mode: Mode) -> Sequence[int | None]:
        """Return the sizes of the pieces in which it is requested."""
        if mode is Mode.STREAMED:
            return self.sizes
        return (None, 1) if mode is Mode.ASYNC_STREAMED else (None,)

    def rule(self, size: int | None) -> ScriptRule:
        """The rule that answers it."""
        pace = Pace(tokens_per_chunk=2, bytes_per_write=size)
        pattern = Pattern(text=TextPattern(TextKind.GLOB, f"{self._entry(size)}/*"))
        turns = tuple(replace(turn, response=_paced(turn.response, pace)) for turn in self.turns)
        return ScriptRule(pattern, _paced(self.response, pace), self.failure, turns=turns)

    def _entry(self, size: int | None) -> str:
        return f"{self.name}/{size or 'whole'}"


def _paced(response: ScriptResponse | None, pace: Pace) -> ScriptResponse | None:
    return None if response is None else replace(response, pace=pace)


def scenario() -> Script:
    """The scenario that answers every case."""
    return Script(responses=tuple(_rules()), seed=7)


def _rules() -> Iterator[ScriptRule]:
    for case in (*ANSWERS, *FAILURES):
        for size in case.sizes:
            yield case.rule(size)


# ---- answers

# Characters of one to four bytes, and one that some line readers take for the end of a line.
_TEXT = 'Plain, then ä, then 漢字, then 🙂, a "quote", a \\ and a\u2028separator.\nEnd.'
_LONG = "Word after word, ä or 🙂. " * 4
_CALL = ScriptedCall("look", {"at": 'ä "b" \\ 🙂', "depth": 3})
_OTHER_CALL = ScriptedCall("look", {"at": "c"})
_VALUE = {"label": "ä", "amounts": [1, 2, 3]}
_VALUE_TEXT = '{"label":"ä","amounts":[1,2,3]}'
_THOUGHT = "First this, then ä, and 漢 at last."
_RESULT = "seen: 漢"
_USAGE = ScriptedUsage(input_tokens=30, output_tokens=12, reasoning_tokens=0, cache_read_tokens=10)
_COUNTS = Counts(input=30, cached=10, output=12, reasoning=0)


def _given_back(response: ScriptResponse) -> tuple[ScriptTurn, ...]:
    """Return the turns that follow once every tool has returned its result."""
    pattern = Pattern(tool_result=TextPattern(TextKind.CONTAINS, _RESULT))
    return (ScriptTurn(pattern, response),)


ANSWERS: tuple[Case, ...] = (
    Case("text", ScriptResponse(_TEXT, usage=_USAGE), expected=Expected(_TEXT, counts=_COUNTS)),
    Case("long text", ScriptResponse(_LONG), expected=Expected(_LONG)),
    Case("empty text", ScriptResponse(), expected=Expected()),
    Case(
        "tool call",
        ScriptResponse(tool_calls=(_CALL,), usage=_USAGE),
        asked={"tools": True},
        expected=Expected(calls=(("look", _CALL.input),), stop=SimStopReason.TOOL_USE, counts=_COUNTS),
    ),
    Case(
        "parallel tool calls",
        ScriptResponse(tool_calls=(_CALL, _OTHER_CALL, _CALL)),
        asked={"tools": True},
        expected=Expected(
            calls=(("look", _CALL.input), ("look", _OTHER_CALL.input), ("look", _CALL.input)),
            stop=SimStopReason.TOOL_USE,
        ),
    ),
    Case(
        "text and a tool call",
        ScriptResponse(_TEXT, tool_calls=(_CALL,)),
        asked={"tools": True},
        expected=Expected(_TEXT, calls=(("look", _CALL.input),), stop=SimStopReason.TOOL_USE),
    ),
    Case(
        "tool result",
        ScriptResponse(tool_calls=(_CALL, _OTHER_CALL)),
        turns=_given_back(ScriptResponse(_TEXT)),
        asked={"tools": True, "results": (_RESULT, "c")},
        expected=Expected(_TEXT),
        note="the calls are sent back as the SDK gave them, with their results",
    ),
    Case(
        "structured",
        ScriptResponse(_VALUE_TEXT),
        asked={"structured": True},
        expected=Expected(_VALUE_TEXT, parsed=_VALUE),
        note="read by the SDK's own helper where it has one",
    ),
    Case(
        "reasoning",
        ScriptResponse(
            _TEXT,
            reasoning=_THOUGHT,
            usage=ScriptedUsage(input_tokens=30, output_tokens=20, reasoning_tokens=8, cache_read_tokens=0),
        ),
        asked={"reasoning": True},
        expected=Expected(_TEXT, reasoning=_THOUGHT, counts=Counts(30, 0, 20, 8)),
    ),
    Case(
        "reasoning, then a tool result",
        ScriptResponse(reasoning=_THOUGHT, tool_calls=(_CALL,)),
        turns=_given_back(ScriptResponse(_TEXT)),
        asked={"reasoning": True, "tools": True, "results": (_RESULT,)},
        expected=Expected(_TEXT),
        note="signatures and thoughts are sent back as the SDK gave them",
    ),
    Case(
        "declined",
        ScriptResponse(refusal="No, ä."),
        expected=Expected(refusal="No, ä.", stop=SimStopReason.REFUSAL),
    ),
    Case(
        "most tokens",
        ScriptResponse("abc " * 20),
        asked={"max_tokens": 16},
        expected=Expected("abc " * 16, stop=SimStopReason.LENGTH),
    ),
    Case(
        "stop sequence",
        ScriptResponse("before HALT after"),
        asked={"stop": ("HALT",)},
        expected=Expected("before ", stop=SimStopReason.STOP_SEQUENCE),
    ),
    Case(
        "content filter",
        ScriptResponse("halfhalfhalfhalf"),
        Fault("content_filter"),
        expected=Expected("halfhalf", stop=SimStopReason.CONTENT_FILTER),
    ),
    Case(
        "retry",
        ScriptResponse("at last"),
        Fault("rate_limit", {**KINDS["rate_limit"].default_settings, "retry_after": 0.01}, times=2),
        asked={"retries": 2},
        expected=Expected("at last"),
        note="refused twice, with the SDK's own retries turned on",
    ),
)


# ---- failures

_RESETS = ("connection_reset", "reset_at_token")
_SCRIPTED = "one two three four five six seven ä 🙂 nine ten."


def _failing(
    kind: str,
    contract: Contract = Contract.RAISES,
    name: str = "",
    asked: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Case:
    needs_calls = KINDS[kind].needs_tool_calls
    calls = (_CALL, _OTHER_CALL) if needs_calls else ()
    expected = Expected(
        "" if needs_calls else _SCRIPTED,
        tuple((call.tool, call.input) for call in calls),
        stop=SimStopReason.TOOL_USE if needs_calls else SimStopReason.END,
    )
    return Case(
        name or kind,
        ScriptResponse(expected.text, tool_calls=calls),
        Fault(kind, {**KINDS[kind].default_settings, **settings}),
        asked={"tools": needs_calls, **(asked or {})},
        expected=expected,
        contract=contract,
        sizes=(None, 1),
        races=kind in _RESETS,
        note=KINDS[kind].description,
    )


FAILURES: tuple[Case, ...] = (
    _failing("auth_error"),
    _failing("permission_denied"),
    _failing("not_found"),
    _failing("invalid_request"),
    _failing("conflict"),
    _failing("too_large"),
    _failing("rate_limit", retry_after=7),
    _failing("rate_limit", name="rate_limit, milliseconds", retry_after=1.5, form="milliseconds"),
    _failing("out_of_credits"),
    _failing("overloaded", retry_after=3),
    _failing("unavailable"),
    _failing("server_error"),
    _failing("timeout"),
    _failing("network_unreachable"),
    _failing("connection_timeout", after_ms=20),
    _failing("hang", asked={"patience": 0.3}),
    _failing("connection_reset"),
    _failing("malformed_json"),
    _failing("empty_body"),
    _failing("html_error"),
    _failing("error_in_200"),
    _failing("partial_response"),
    _failing("stream_cut", after_chunks=2),
    _failing("reset_at_token", token=4),
    _failing("error_in_stream", after_chunks=2),
    _failing("missing_end"),
    _failing("stall", Contract.RIGHT, after_chunks=2, for_ms=30),
    _failing("slow_drip", Contract.RIGHT, ms_per_chunk=2),
    _failing("split_utf8", Contract.RIGHT),
    _failing("late_usage", Contract.RIGHT, delay_ms=30),
    _failing("missing_usage", Contract.UNNOTICED),
    _failing("duplicate_chunk", Contract.UNNOTICED, chunk=1),
    _failing("missing_chunk", Contract.UNNOTICED, chunk=1),
    _failing("reordered_chunks", Contract.UNNOTICED, chunk=1),
    _failing("truncated_arguments", Contract.UNNOTICED),
    _failing("invalid_arguments", Contract.UNNOTICED),
    _failing("refusal", Contract.UNNOTICED),
    _failing("length", Contract.UNNOTICED, tokens=3),
)
