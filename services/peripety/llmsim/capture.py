"""Capture log: captured calls of the scripted LLM, for queries and assertions of tests.

A captured call is a summary of a request and its outcome, without credentials. The log is bounded in
memory, and optionally complete in a file.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from threading import RLock
from typing import TYPE_CHECKING, Any

from peripety.errors import FailedPreconditionError
from peripety.llmsim.faults.kinds import KINDS, FaultStage
from peripety.llmsim.provider_rules.limits import fingerprint
from peripety.llmsim.types import (
    BilledUsage,
    ReasoningPart,
    RefusalPart,
    SimStopReason,
    SimToolCall,
    TextPart,
    ToolUsePart,
)

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from peripety.engine.patterns.syntax import MatchSubject
    from peripety.llmsim.script.types import Fault, ScriptRule
    from peripety.llmsim.types import Api, ApiError, ReplyPart, SimReply, SimRequest


@dataclass(frozen=True, slots=True)
class RequestSummary:
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
    def from_request(cls, request: SimRequest, subject: MatchSubject) -> RequestSummary:
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
class AnsweredOutcome:
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
    stop: SimStopReason
    usage: BilledUsage
    delay_ms: int = 0
    reasoning: str = ""
    refusal: str | None = None
    tool_calls: tuple[SimToolCall, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class FailedOutcome:
    """A call without an answer.

    Attributes:
        type: the kind of the fault, or of the error if no fault was scripted.
        message: the message sent to the caller, or a description of the fault.
    """

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class UnmatchedOutcome:
    """A call that no rule matched, without a default response.

    Attributes:
        closest: the closest rules, with their failed predicates and an example each.
    """

    closest: tuple[str, ...] = ()


Outcome = AnsweredOutcome | FailedOutcome | UnmatchedOutcome


@dataclass(frozen=True, slots=True)
class CapturedCall:
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
    request: RequestSummary
    label: str | None
    outcome: Outcome

    def to_json(self) -> dict[str, Any]:
        """Return the call as a JSON value."""
        asked = {name: getattr(self.request, name) for name in RequestSummary.__slots__}
        return {
            "number": self.number,
            "time": datetime.fromtimestamp(self.time, UTC).isoformat().replace("+00:00", "Z"),
            "request": asked | {"api": self.request.api.value},
            "label": self.label,
            "outcome": _to_json(self.outcome),
        }


def make_outcome(
    reply: SimReply | None,
    error: ApiError | None,
    failure: Fault | None,
    delay_ms: int,
) -> Outcome:
    """Return the outcome of a matched request.

    Args:
        reply: the answer, if any.
        error: the error sent instead.
        failure: the fault.
        delay_ms: the delay before the answer.
    """
    if error is not None:
        return FailedOutcome(failure.type if failure else error.kind.value, error.message)
    if failure is not None and KINDS[failure.type].stage in {FaultStage.CONNECTION, FaultStage.BODY}:
        return FailedOutcome(failure.type, KINDS[failure.type].description)
    if reply is None:
        raise ValueError("an outcome needs a reply, an error or a failure")
    return AnsweredOutcome(
        text=_join_parts(reply, TextPart),
        stop=reply.stop,
        usage=reply.usage,
        delay_ms=delay_ms,
        reasoning=_join_parts(reply, ReasoningPart),
        refusal=_join_parts(reply, RefusalPart) or None,
        tool_calls=tuple(
            SimToolCall(part.name, part.arguments, part.id)
            for part in reply.parts
            if isinstance(part, ToolUsePart)
        ),
        failure=failure.type if failure else None,
    )


def _join_parts(reply: SimReply, kind: type[ReplyPart]) -> str:
    return "".join(piece for part in reply.parts if isinstance(part, kind) for piece in part.pieces)


def _to_json(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case AnsweredOutcome():
            calls = [{"tool": call.name, "input": call.arguments} for call in outcome.tool_calls]
            usage = {name: getattr(outcome.usage, name) for name in BilledUsage.__slots__}
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
        case FailedOutcome():
            return {"type": "failure", "failure": outcome.type, "message": outcome.message}
        case UnmatchedOutcome():
            return {"type": "no_match", "closest": list(outcome.closest)}


MAX_CALLS = 10_000

_MAX_COMPARED = 200
_MAX_SHOWN = 80


class CaptureLog:
    """Thread-safe log of all calls, in order.

    A search text is found anywhere in a prompt; a compiled regular expression is searched for.

    Args:
        rules: returns the rules, to find unused ones.
        path: a file that gets one line of JSON per call, flushed at once; None for no file.
        limit: maximum number of calls in memory.

    Raises:
        FailedPreconditionError: the file cannot be written.
    """

    def __init__(
        self,
        rules: Callable[[], Sequence[ScriptRule]],
        path: Path | None = None,
        limit: int = MAX_CALLS,
    ) -> None:
        self._rules = rules
        self._lock = RLock()
        self._calls: deque[CapturedCall] = deque(maxlen=limit)
        self._used: Counter[str] = Counter()
        self._number = 0
        self._file = None
        if path is not None:
            try:
                self._number = _repair_last_line(path)
                self._file = path.open("ab")
            except OSError as error:
                raise FailedPreconditionError(
                    f"the capture file {path} cannot be written: {error.strerror or error}; choose another",
                ) from error

    def record(
        self,
        request: RequestSummary,
        time: float,
        label: str | None,
        outcome: Outcome,
    ) -> CapturedCall:
        """Add a call; see `CapturedCall` for the arguments."""
        with self._lock:
            self._number += 1
            call = CapturedCall(self._number, time, request, label, outcome)
            self._calls.append(call)
            if label is not None:
                self._used[label] += 1
            if self._file is not None:
                self._file.write(_line(call))
                self._file.flush()
        return call

    def clear(self) -> None:
        """Clear the calls and the set of used rules; the file stays as it is."""
        with self._lock:
            self._calls.clear()
            self._used.clear()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    # ---- queries

    def __iter__(self) -> Iterator[CapturedCall]:
        """Iterate over the calls, oldest first."""
        with self._lock:
            return iter(list(self._calls))

    def __len__(self) -> int:
        return len(self._calls)

    def after(self, number: int) -> list[CapturedCall]:
        """Return the calls after the one with a number, oldest first; all if the log started again since."""
        with self._lock:
            later = [] if number == self._number else list(self._calls)
            return later if number > self._number else [call for call in later if call.number > number]

    def last(self, count: int = 1) -> list[CapturedCall]:
        """Return the latest calls, oldest first."""
        return list(self)[-count:] if count > 0 else []

    def count(self, predicate: Callable[[CapturedCall], bool]) -> int:
        """Return the number of calls for which a predicate holds."""
        return sum(1 for call in self if predicate(call))

    def find_by_prompt(self, prompt: str | re.Pattern[str]) -> list[CapturedCall]:
        """Return the calls whose prompt contains a text."""
        return [call for call in self if _contains(call.request.prompt, prompt)]

    def find_responses(self) -> list[CapturedCall]:
        """Return the calls with an answer."""
        return [call for call in self if isinstance(call.outcome, AnsweredOutcome)]

    def find_failures(self, kind: str | None = None) -> list[CapturedCall]:
        """Return the calls that failed or whose answer was changed by a fault; with `kind`, by that kind."""
        return [call for call in self if (found := _failure_kind(call)) is not None and kind in {None, found}]

    def unused_rules(self) -> list[str]:
        """Return the labels of rules that never answered."""
        labels = (f"response[{number}]" for number in range(len(self._rules())))
        return [label for label in labels if label not in self._used]

    def unused_turns(self) -> list[str]:
        """Return the labels of turns that never answered."""
        labels = (
            f"response[{number}].turn[{turn}]"
            for number, rule in enumerate(self._rules())
            for turn in range(len(rule.turns))
        )
        return [label for label in labels if label not in self._used]

    # ---- assertions

    def assert_received(self, prompt: str | re.Pattern[str]) -> None:
        """Assert that a prompt contains a text.

        Raises:
            AssertionError: no prompt does; the message shows the closest.
        """
        if not self.find_by_prompt(prompt):
            raise AssertionError(f"no prompt has {_quote_wanted(prompt)}; {self._nearest(prompt)}")

    def assert_not_received(self, prompt: str | re.Pattern[str]) -> None:
        """Assert that no prompt contains a text.

        Raises:
            AssertionError: a prompt does.
        """
        if found := self.find_by_prompt(prompt):
            raise AssertionError(
                f"{_format_call(found[0])} has {_quote_wanted(prompt)}, and no prompt should",
            )

    def assert_count(self, count: int, prompt: str | re.Pattern[str] | None = None) -> None:
        """Assert the number of calls, or of calls whose prompt contains a text.

        Raises:
            AssertionError: the number differs.
        """
        found = list(self) if prompt is None else self.find_by_prompt(prompt)
        if len(found) != count:
            which = "calls" if prompt is None else f"prompts with {_quote_wanted(prompt)}"
            shown = "".join(f"\n  {_format_call(call)}" for call in found[-5:])
            raise AssertionError(f"{len(found)} {which}, not {count}{shown and ':'}{shown}")

    def assert_order(self, *prompts: str | re.Pattern[str]) -> None:
        """Assert that prompts arrived in this order; other calls may lie between them.

        Raises:
            AssertionError: a prompt is missing, or did not arrive after the one before it.
        """
        calls = iter(self)
        after = "from the beginning"
        for prompt in prompts:
            found = next((call for call in calls if _contains(call.request.prompt, prompt)), None)
            if found is None:
                earlier = self.find_by_prompt(prompt)
                where = f"only {_format_call(earlier[-1])} does" if earlier else self._nearest(prompt)
                raise AssertionError(f"{after}, no prompt has {_quote_wanted(prompt)}; {where}")
            after = f"after {_format_call(found)}"

    def assert_last_contains(self, text: str | re.Pattern[str]) -> None:
        """Assert that the latest answer contains a text.

        Raises:
            AssertionError: it does not, or no call was answered.
        """
        answers = self.find_responses()
        if not answers:
            raise AssertionError(f"nothing was answered, so no answer has {_quote_wanted(text)}")
        last = answers[-1]
        answer = last.outcome.text if isinstance(last.outcome, AnsweredOutcome) else ""
        if not _contains(answer, text):
            raise AssertionError(
                f"{_shorten(answer)}, the latest answer, to {_format_call(last)}, lacks "
                f"{_quote_wanted(text)}",
            )

    def assert_all_used(self) -> None:
        """Assert that every rule and every turn has answered.

        Raises:
            AssertionError: some have not; the message lists them.
        """
        if unused := [*self.unused_rules(), *self.unused_turns()]:
            raise AssertionError(f"never used: {', '.join(unused)}")

    def _nearest(self, wanted: str | re.Pattern[str]) -> str:
        calls = self.last(_MAX_COMPARED)
        if not calls:
            return "nothing was received"
        text = wanted if isinstance(wanted, str) else wanted.pattern
        matcher = SequenceMatcher(b=text[:_MAX_COMPARED], autojunk=False)

        def likeness(call: CapturedCall) -> float:
            matcher.set_seq1(call.request.prompt[:_MAX_COMPARED])
            return matcher.ratio()

        return f"of {len(self)} received, the nearest is {_format_call(max(calls, key=likeness))}"


def _line(call: CapturedCall) -> bytes:
    # A lone surrogate cannot be encoded in UTF-8, but it can be escaped in JSON.
    return json.dumps(call.to_json(), ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _repair_last_line(path: Path) -> int:
    """Terminate a truncated last line of the file, and return the number of lines."""
    if not path.exists():
        return 0
    with path.open("r+b") as file:
        lines = 0
        line = b"\n"
        for lines, line in enumerate(file, 1):  # noqa: B007 - the last ones count
            pass
        if not line.endswith(b"\n"):
            file.write(b"\n")
    return lines


def _contains(text: str, wanted: str | re.Pattern[str]) -> bool:
    return wanted in text if isinstance(wanted, str) else wanted.search(text) is not None


def _quote_wanted(wanted: str | re.Pattern[str]) -> str:
    return _shorten(wanted) if isinstance(wanted, str) else f"/{wanted.pattern}/"


def _failure_kind(call: CapturedCall) -> str | None:
    match call.outcome:
        case FailedOutcome(type=kind):
            return kind
        case AnsweredOutcome(failure=kind):
            return kind
    return None


def _format_call(call: CapturedCall) -> str:
    return f"#{call.number} {_shorten(call.request.prompt)}"


def _shorten(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")
