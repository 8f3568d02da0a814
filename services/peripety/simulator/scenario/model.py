"""A scenario: what the scripted LLM says, to what, how fast, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.sim.patterns import Pattern
    from peripety.simulator.model import Stop

__all__ = [
    "ClockMode",
    "CountScope",
    "Failure",
    "Limit",
    "Pace",
    "Response",
    "Rule",
    "Scenario",
    "ScriptedCall",
    "ScriptedUsage",
    "Turn",
]

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class ClockMode(StrEnum):
    """A virtual clock stands still until it is moved; a real one is the machine's."""

    VIRTUAL = "virtual"
    REAL = "real"


class CountScope(StrEnum):
    """Whose matches `max_matches` and counted failures count: each conversation's own, or everybody's."""

    CONVERSATION = "conversation"
    SHARED = "shared"


@dataclass(frozen=True, slots=True)
class Pace:
    """How an answer arrives.

    Attributes:
        first_token_ms: from the request to the first token.
        tokens_per_second: how fast the rest follows; None is at once.
        tokens_per_chunk: how many tokens each chunk of a stream holds.
        jitter: how much each gap varies, as a share of it from 0 to 1; the whole takes as long as without.
        bytes_per_write: streams are written in pieces of so many bytes; None writes each chunk whole.
    """

    first_token_ms: int = 0
    tokens_per_second: float | None = None
    tokens_per_chunk: int = 1
    jitter: float = 0.0
    bytes_per_write: int | None = None


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call to answer with; `input` is a JSON value."""

    tool: str
    input: Any = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScriptedUsage:
    """Token counts that are claimed instead of the counted ones; None leaves the counted one."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered: reasoning, then prose or a refusal, then tool calls.

    Attributes:
        text: the prose.
        reasoning: what is shown of the model's thoughts, to callers that want to see them.
        refusal: the model declines in these words, and says nothing else.
        tool_calls: the calls, in order; several are parallel calls.
        stop: why the answer ends; by default what follows from the rest.
        usage: token counts that are claimed instead of the counted ones.
        delay_ms: how long the answer is held back, before anything of it is sent.
        pace: how it arrives; None is the scenario's own pace.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str | None = None
    tool_calls: tuple[ScriptedCall, ...] = ()
    stop: Stop | None = None
    usage: ScriptedUsage | None = None
    delay_ms: int = 0
    pace: Pace | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that goes wrong instead of an answer, or with one.

    Attributes:
        type: a kind of `peripety.simulator.failures`.
        settings: its own settings, complete with defaults.
        times: how many matches fail; None is all, or as chance has it.
        of: among how many; the seed chooses which. None means the first ones.
        probability: how likely each match fails, if not by count.
    """

    type: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    times: int | None = None
    of: int | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A step of a sequence: what is expected next, and the answer to it, or what goes wrong, or both."""

    expect: Pattern
    response: Response | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """An answer to what matches its pattern, or what goes wrong, or both; and the turns that may follow.

    Attributes:
        pattern: what is answered.
        response: the answer.
        failure: what goes wrong.
        max_matches: how often the rule is entered at most; turns are not counted.
        turns: what follows the answer, each step once, in order.
        name: what the rule is called in reports; rules keep their state over a reload by it, or by their
            pattern.
    """

    pattern: Pattern
    response: Response | None = None
    failure: Failure | None = None
    max_matches: int | None = None
    turns: tuple[Turn, ...] = ()
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """What each key may use of the models whose names match a glob; None is no limit.

    Attributes:
        models: glob over model names.
        requests_per_minute: requests.
        tokens_per_minute: input and output tokens together, as OpenAI counts them.
        input_tokens_per_minute: input tokens that were not read from the cache.
        output_tokens_per_minute: output tokens.
        concurrency: requests under way at once.
    """

    models: str = "*"
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    input_tokens_per_minute: int | None = None
    output_tokens_per_minute: int | None = None
    concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything a scenario file says.

    Attributes:
        responses: the rules; the first that matches answers.
        default_response: the answer where none does.
        failures: what may go wrong with any request, tried in order before the rule's own failure.
        limits: what each key may use; the first that names the model holds.
        keys: the keys that are accepted; empty accepts every key, and none.
        pace: how answers arrive.
        seed: makes chance, ids and jitter repeatable.
        clock: whether time passes by itself.
        start: when the virtual clock begins.
        counts: whose matches are counted.
    """

    responses: tuple[Rule, ...] = ()
    default_response: Response | None = None
    failures: tuple[Failure, ...] = ()
    limits: tuple[Limit, ...] = ()
    keys: tuple[str, ...] = ()
    pace: Pace = field(default_factory=Pace)
    seed: int = 0
    clock: ClockMode = ClockMode.VIRTUAL
    start: datetime = EPOCH
    counts: CountScope = CountScope.CONVERSATION
