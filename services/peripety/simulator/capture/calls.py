"""One captured call: the request in short, and its outcome. No credential is ever a part of it."""

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
    """A request in short; of one that could not be read, nothing but the API is known.

    Attributes:
        api: the API it came by.
        model: the model's name.
        conversation: the conversation's name, where the caller gave one.
        prompt: what the rules are matched against.
        tool_result: the results of tools that came in; None where none did.
        message_index: how many answers the conversation held already.
        messages: how many messages it has.
        system: the system prompt.
        tools: the names of the tools that may be called.
        stream: whether the answer is streamed.
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
        """What there is to say about a request.

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
    """An answer.

    Attributes:
        text: its prose.
        stop: why it ends.
        usage: what it cost.
        delay_ms: how long it was held back.
        reasoning: what was shown of the model's thoughts.
        refusal: in which words the model declined, if it did.
        tool_calls: what it calls.
        failure: the kind of the failure that changed it or broke it on its way, if any did.
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
    """No answer.

    Attributes:
        type: the kind of the failure, or of the error where no failure was scripted.
        message: what the caller was told, or what went wrong.
    """

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Unmatched:
    """No rule matched, and there is no default response.

    Attributes:
        closest: the rules that came closest, what kept them from matching, and what would have matched.
    """

    closest: tuple[str, ...] = ()


Outcome = Answered | Failed | Unmatched


@dataclass(frozen=True, slots=True)
class Captured:
    """One call.

    Attributes:
        number: which call it is, from 1.
        time: when, in seconds since 1970 by the simulator's clock.
        request: what was asked.
        label: what answered: `response[i]`, `response[i].turn[j]`, `default`; None if nothing did.
        outcome: what came of it.
    """

    number: int
    time: float
    request: Asked
    label: str | None
    outcome: Outcome

    def to_json(self) -> dict[str, Any]:
        """The call as a JSON value."""
        asked = {name: getattr(self.request, name) for name in Asked.__slots__}
        return {
            "number": self.number,
            "time": datetime.fromtimestamp(self.time, UTC).isoformat().replace("+00:00", "Z"),
            "request": asked | {"api": self.request.api.value},
            "label": self.label,
            "outcome": _to_json(self.outcome),
        }


def outcome(reply: Reply | None, error: ApiError | None, failure: Failure | None, delay_ms: int) -> Outcome:
    """What came of a request that something answered.

    Args:
        reply: the answer, if there is one.
        error: what is answered instead.
        failure: what goes wrong.
        delay_ms: how long the answer is held back.
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
