"""One captured call: a summary of the request and its outcome, without credentials."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from peripety.simulator.failures import KINDS, Place
from peripety.simulator.model import Reasoning, Refusal, Stop, Text, ToolCall, ToolUse, Usage
from peripety.simulator.truth.keys import fingerprint

if TYPE_CHECKING:
    from peripety.sim.patterns import Subject
    from peripety.simulator.model import Api, ApiError, Part, Reply, Request
    from peripety.simulator.scenario.model import Failure

__all__ = ["Answered", "Asked", "Captured", "Failed", "Outcome", "Unmatched", "outcome"]


@dataclass(frozen=True, slots=True)
class Asked:
    """Summary of a request. If the request could not be parsed, only the API is known.

    Attributes:
        api: the API of the request.
        model: the model name.
        conversation: the conversation name, if the caller set one.
        prompt: the text that rules are matched against.
        tool_result: the tool results of the request; None without any.
        message_index: number of answers already in the conversation.
        messages: number of messages.
        system: the system prompt.
        tools: the names of the available tools.
        stream: True if the answer is streamed.
        key: a fingerprint of the credential; `-` without one.
    """

    api: Api
    model: str = ""
    conversation: str | None = None
    prompt: str = ""
    tool_result: str | None = None
    message_index: int = 0
    messages: int = 0
    system: str = ""
    tools: tuple[str, ...] = ()
    stream: bool = False
    key: str = fingerprint("")

    @classmethod
    def of(cls, request: Request, subject: Subject) -> Asked:
        """Summarize a request.

        Args:
            request: the request.
            subject: what its rules are matched against.
        """
        return cls(
            api=request.api,
            model=request.model,
            conversation=request.conversation,
            prompt=subject.text,
            tool_result=subject.tool_result,
            message_index=subject.message_index,
            messages=len(request.messages),
            system=request.system,
            tools=tuple(tool.name for tool in request.tools),
            stream=request.stream,
            key=fingerprint(request.key),
        )


@dataclass(frozen=True, slots=True)
class Answered:
    """A call with an answer.

    Attributes:
        text: the prose.
        stop: the stop reason.
        usage: the token usage.
        delay_ms: the delay before the answer.
        reasoning: the visible reasoning.
        refusal: the text of a refusal, if any.
        tool_calls: the tool calls.
        failure: the kind of fault that changed or broke the answer, if any.
    """

    text: str
    stop: Stop
    usage: Usage
    delay_ms: int = 0
    reasoning: str = ""
    refusal: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A call without an answer.

    Attributes:
        type: the kind of the fault, or of the error if no fault was scripted.
        message: the message sent to the caller, or a description of the fault.
    """

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A call that no rule matched, without a default response.

    Attributes:
        closest: the closest rules, with their failed predicates and an example each.
    """

    closest: tuple[str, ...] = ()


Outcome = Answered | Failed | Unmatched


@dataclass(frozen=True, slots=True)
class Captured:
    """A captured call.

    Attributes:
        number: the number of the call, from 1.
        time: the time in seconds since 1970, by the simulator's clock.
        request: the summary of the request.
        label: the source of the answer: `response[i]`, `response[i].turn[j]`, `default`; None without a
            match.
        outcome: the result.
    """

    number: int
    time: float
    request: Asked
    label: str | None
    outcome: Outcome

    def to_json(self) -> dict[str, Any]:
        """Return the call as a JSON value."""
        asked = {name: getattr(self.request, name) for name in Asked.__slots__}
        return {
            "number": self.number,
            "time": datetime.fromtimestamp(self.time, UTC).isoformat().replace("+00:00", "Z"),
            "request": asked | {"api": self.request.api.value},
            "label": self.label,
            "outcome": _to_json(self.outcome),
        }


def outcome(reply: Reply | None, error: ApiError | None, failure: Failure | None, delay_ms: int) -> Outcome:
    """Return the outcome of a matched request.

    Args:
        reply: the answer, if any.
        error: the error sent instead.
        failure: the fault.
        delay_ms: the delay before the answer.
    """
    if error is not None:
        return Failed(failure.type if failure else error.kind.value, error.message)
    if failure is not None and KINDS[failure.type].place in {Place.CONNECTION, Place.BODY}:
        return Failed(failure.type, KINDS[failure.type].about)
    if reply is None:
        raise ValueError("an outcome needs a reply, an error or a failure")
    return Answered(
        text=_joined(reply, Text),
        stop=reply.stop,
        usage=reply.usage,
        delay_ms=delay_ms,
        reasoning=_joined(reply, Reasoning),
        refusal=_joined(reply, Refusal) or None,
        tool_calls=tuple(
            ToolCall(part.name, part.input, part.id) for part in reply.parts if isinstance(part, ToolUse)
        ),
        failure=failure.type if failure else None,
    )


def _joined(reply: Reply, kind: type[Part]) -> str:
    return "".join(piece for part in reply.parts if isinstance(part, kind) for piece in part.pieces)


def _to_json(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Answered():
            calls = [{"tool": call.name, "input": call.arguments} for call in outcome.tool_calls]
            usage = {name: getattr(outcome.usage, name) for name in Usage.__slots__}
            return {
                "type": "response",
                "text": outcome.text,
                "reasoning": outcome.reasoning,
                "refusal": outcome.refusal,
                "tool_calls": calls,
                "stop": outcome.stop.value,
                "usage": usage | {"written": dict(outcome.usage.written)},
                "delay_ms": outcome.delay_ms,
                "failure": outcome.failure,
            }
        case Failed():
            return {"type": "failure", "failure": outcome.type, "message": outcome.message}
        case Unmatched():
            return {"type": "no_match", "closest": list(outcome.closest)}
