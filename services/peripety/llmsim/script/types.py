"""Script types: patterns, answers, timing and faults of the scripted LLM."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.engine.patterns.syntax import Pattern
    from peripety.llmsim.types import SimStopReason


EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class ClockMode(StrEnum):
    """Clock types: a virtual clock moves only on request, a real one is the machine's."""

    VIRTUAL = "virtual"
    REAL = "real"


class CountScope(StrEnum):
    """Scope of `max_matches` and of counted faults: each conversation, or all together."""

    CONVERSATION = "conversation"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Pace:
    """Timing of an answer.

    Attributes:
        first_token_ms: delay of the first token after the request.
        tokens_per_second: rate of the other tokens; None sends all at once.
        tokens_per_chunk: number of tokens per stream chunk.
        jitter: variation of each gap, as a fraction from 0 to 1; the total duration stays the same.
        bytes_per_write: size of the writes to a stream, in bytes; None writes each chunk whole.
    """

    first_token_ms: int = 0
    tokens_per_second: float | None = None
    tokens_per_chunk: int = 1
    jitter: float = 0.0
    bytes_per_write: int | None = None


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A scripted tool call; `input` is a JSON value."""

    tool: str
    input: Any = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScriptedUsage:
    """Token counts that override the counted ones; None leaves a count unchanged."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ScriptResponse:
    """A scripted answer: reasoning, then prose or a refusal, then tool calls.

    Attributes:
        text: the prose.
        reasoning: the reasoning, shown to callers that request it.
        refusal: the text of a refusal, which excludes other content.
        tool_calls: the tool calls, in order; several are parallel calls.
        stop: the stop reason; by default derived from the content.
        usage: token counts that override the counted ones.
        delay_ms: the delay before the whole answer.
        pace: the timing; None uses the pace of the script.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str | None = None
    tool_calls: tuple[ScriptedCall, ...] = ()
    stop: SimStopReason | None = None
    usage: ScriptedUsage | None = None
    delay_ms: int = 0
    pace: Pace | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that replaces or changes an answer.

    Attributes:
        type: a kind of `peripety.llmsim.faults.kinds`.
        settings: the settings of the kind, including defaults.
        times: number of matches that fail; None for all, or by probability.
        of: number of matches among which the seed chooses them; None for the first ones.
        probability: probability that a match fails, instead of a count.
    """

    type: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    times: int | None = None
    of: int | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class ScriptTurn:
    """A step of a sequence: the expected prompt, and its answer, its fault, or both."""

    expect: Pattern
    response: ScriptResponse | None = None
    failure: Fault | None = None


@dataclass(frozen=True, slots=True)
class ScriptRule:
    """A pattern with its answer, its fault, or both, and the turns that may follow.

    Attributes:
        pattern: the prompts to answer.
        response: the answer.
        failure: the fault.
        max_matches: maximum number of times the rule is entered, not counting turns.
        turns: the steps after the answer, each used once, in order.
        name: the name in reports. After a reload, rules are identified by name or by pattern.
    """

    pattern: Pattern
    response: ScriptResponse | None = None
    failure: Fault | None = None
    max_matches: int | None = None
    turns: tuple[ScriptTurn, ...] = ()
    name: str | None = None


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Rate limits per key for models that match a glob; None is unlimited.

    Attributes:
        models: glob over model names.
        requests_per_minute: requests.
        tokens_per_minute: input and output tokens together, as OpenAI counts them.
        input_tokens_per_minute: input tokens that were not read from the cache.
        output_tokens_per_minute: output tokens.
        concurrency: concurrent requests.
    """

    models: str = "*"
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    input_tokens_per_minute: int | None = None
    output_tokens_per_minute: int | None = None
    concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """A complete script.

    Attributes:
        responses: the rules; the first match answers.
        default_response: the answer if no rule matches.
        failures: script-wide faults, tried in order before the fault of the rule.
        limits: the rate limits per key; the first that matches the model applies.
        keys: the accepted API keys; empty accepts any key, and requests without a key.
        pace: the timing of answers.
        seed: determines random numbers, ids and jitter.
        clock: the clock type.
        start: the start of the virtual clock.
        counts: the scope of match counts.
    """

    responses: tuple[ScriptRule, ...] = ()
    default_response: ScriptResponse | None = None
    failures: tuple[Fault, ...] = ()
    limits: tuple[RateLimit, ...] = ()
    keys: tuple[str, ...] = ()
    pace: Pace = field(default_factory=Pace)
    seed: int = 0
    clock: ClockMode = ClockMode.VIRTUAL
    start: datetime = EPOCH
    counts: CountScope = CountScope.CONVERSATION
