"""Script recorder: writes the answers of a provider as a script, with credentials redacted.

The file is rewritten after each answer, so that it is complete at any time. Redaction covers the observed
credentials, and text that looks like one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from peripety.engine.patterns.syntax import Pattern, TextKind, TextPattern
from peripety.errors import FailedPreconditionError
from peripety.llmsim.conversations import SimConversations
from peripety.llmsim.faults.injection import fault_of_error
from peripety.llmsim.faults.kinds import KINDS, FaultStage
from peripety.llmsim.script.files import write_script
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
from peripety.llmsim.state import StateTable
from peripety.llmsim.types import ReasoningPart, RefusalPart, SimStopReason, TextPart, ToolUsePart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from peripety.engine.patterns.syntax import MatchSubject
    from peripety.llmsim.conversations import SimConversation
    from peripety.llmsim.delivery.plan import DeliverySettings
    from peripety.llmsim.record.response_draft import ResponseDraft
    from peripety.llmsim.script_engine import Exchange
    from peripety.llmsim.types import BilledUsage, ReplyPart, SimReply, SimRequest


REDACTED = "[redacted]"

_MIN_CREDENTIAL_LENGTH = 8  # shorter values would occur in ordinary words
_CREDENTIAL_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
_CREDENTIAL_PARAMS = ("key", "api_key", "access_token")
_CREDENTIAL_PATTERN = re.compile(
    r"\bsk-[\w-]{16,}"  # OpenAI, Anthropic, DeepSeek and others
    r"|\bAIza[\w-]{30,}"  # Google
    r"|\bya29\.[\w.-]{20,}"
    r"|\b(?:gsk|hf|xai|pplx|r8|ghp|gho|ghs|glpat|xoxb|xoxp)[_-][\w-]{16,}"
    r"|\bgithub_pat_\w{20,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"  # JSON web tokens
    r"|(?<=Bearer )[\w.~+/=-]{16,}",
)


class Redactor:
    """Remover of credentials from text."""

    def __init__(self) -> None:
        self._credentials: set[str] = set()

    def add_request(self, headers: Mapping[str, str], params: Mapping[str, str]) -> None:
        """Add the credentials of a request.

        Args:
            headers: the headers, names in lower case.
            params: the query parameters.
        """
        values = [headers.get(name, "") for name in _CREDENTIAL_HEADERS] + [
            params.get(name, "") for name in _CREDENTIAL_PARAMS
        ]
        for value in values:
            self.add_credential(value.rpartition(" ")[2])  # without the scheme

    def add_credential(self, credential: str) -> None:
        """Add a credential."""
        if len(credential) >= _MIN_CREDENTIAL_LENGTH:
            self._credentials.add(credential)

    def redact_text(self, text: str) -> str:
        """Return a text without credentials."""
        for credential in sorted(self._credentials, key=len, reverse=True):
            text = text.replace(credential, REDACTED)
        return _CREDENTIAL_PATTERN.sub(REDACTED, text)

    def redact_value(self, value: Any) -> Any:
        """Return a JSON value without credentials."""
        match value:
            case str():
                return self.redact_text(value)
            case dict():
                return {self.redact_text(name): self.redact_value(each) for name, each in value.items()}
            case list():
                return [self.redact_value(each) for each in value]
        return value


_BURST_MS = 20.0


def to_scripted_response(
    reply: SimReply | ResponseDraft,
    pace: Pace | None,
    delay_ms: int = 0,
) -> ScriptResponse:
    """Return the scripted response for an answer.

    Args:
        reply: the answer.
        pace: its timing.
        delay_ms: its delay.
    """
    text, stop = _join_text(reply, TextPart), reply.stop
    if stop is SimStopReason.STOP_SEQUENCE and reply.stop_sequence is not None:
        # A repeated request contains the same stop sequence.
        text, stop = text + reply.stop_sequence, None
    return ScriptResponse(
        text=text,
        reasoning=_join_text(reply, ReasoningPart),
        refusal=_join_text(reply, RefusalPart) or None,
        tool_calls=tuple(
            ScriptedCall(part.name, part.arguments) for part in reply.parts if isinstance(part, ToolUsePart)
        ),
        stop=stop,
        usage=None if reply.usage is None else _claimed_usage(reply.usage),
        delay_ms=delay_ms,
        pace=pace,
    )


def as_fault(settings: DeliverySettings) -> Fault | None:
    """Return the delivery fault to record; None if the answer itself shows the fault."""
    failure = settings.fault
    if failure is None or KINDS[failure.type].stage is FaultStage.ANSWER:
        return None
    return Fault(failure.type, failure.settings)


def observed_pace(draft: ResponseDraft, ended_ms: float, *, stream: bool) -> Pace:
    """Return the observed pace of an answer.

    Args:
        draft: the answer.
        ended_ms: the time of its last byte, in milliseconds after the request.
        stream: True if it was streamed.
    """
    if not stream or not draft.chunk_times:
        return Pace(first_token_ms=round(ended_ms))
    first, last, chunks = draft.chunk_times[0], draft.chunk_times[-1], len(draft.chunk_times)
    tokens = max(_visible_tokens(draft), chunks)
    # Data from a single socket read does not determine a rate.
    rate = (
        None if last - first < _BURST_MS else round(tokens * 1000 * (chunks - 1) / chunks / (last - first), 1)
    )
    return Pace(round(first), rate, max(1, round(tokens / chunks)))


def _visible_tokens(draft: ResponseDraft) -> int:
    if draft.usage is None:
        return 0
    shown = any(isinstance(part, ReasoningPart) for part in draft.parts)
    return draft.usage.output - (0 if shown else draft.usage.reasoning)


def _join_text(reply: SimReply | ResponseDraft, kind: type[ReplyPart]) -> str:
    return "".join(piece for part in reply.parts if isinstance(part, kind) for piece in part.pieces)


def _claimed_usage(usage: BilledUsage) -> ScriptedUsage:
    return ScriptedUsage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        reasoning_tokens=usage.reasoning,
        cache_read_tokens=usage.read,
        cache_write_tokens=sum(usage.written.values()) or None,
    )


@dataclass(frozen=True, slots=True)
class _RecordedStep:
    """An answer with its prompt."""

    pattern: Pattern
    response: ScriptResponse | None
    failure: Fault | None


class ScriptRecorder:
    """Thread-safe converter of answers to the rules of a script.

    Later answers of a conversation become turns of the rule that started it. A repeated prompt becomes
    another rule, and each earlier rule for the same prompt answers once.

    Args:
        path: the script file; it is overwritten.

    Raises:
        FailedPreconditionError: the directory of the file does not exist.

    Attributes:
        redactor: removes credentials from the file.
    """

    def __init__(self, path: Path) -> None:
        if not path.parent.is_dir():
            raise FailedPreconditionError(f"cannot record to {path}: directory {path.parent} does not exist")
        self.redactor = Redactor()
        self._path = path
        self._lock = Lock()
        self._conversations = SimConversations(StateTable(), shared=False)
        self._rules: list[list[_RecordedStep]] = []
        self._step_by_position: dict[
            str,
            int,
        ] = {}  # rules by the positions of conversations that may continue

    def record_exchange(self, exchange: Exchange) -> None:
        """Record an answer of the simulator itself."""
        manner, reply = exchange.delivery, exchange.reply
        failure = as_fault(manner) if exchange.error is None else fault_of_error(exchange.error)
        pace = None if manner.pace == Pace() else manner.pace
        response = None if reply is None else to_scripted_response(reply, pace, int(manner.delay_ms))
        self.record_answer(exchange.request, response, failure, reply if failure is None else None)

    def record_answer(
        self,
        request: SimRequest,
        response: ScriptResponse | None,
        fault: Fault | None,
        reply: SimReply | None,
    ) -> None:
        """Record an answer.

        Args:
            request: the request.
            response: the response.
            failure: the fault.
            reply: the answer as the caller is going to repeat it; None if it did not arrive intact.
        """
        if response is None and fault is None:
            return
        with self._lock:
            self.redactor.add_credential(request.key)
            conversation = self._conversations.conversation_of(request)
            pattern = self._pattern(conversation.subject(request.model))
            self._store_step(
                _RecordedStep(pattern, self._redact_response(response), self._redact_fault(fault)),
                conversation,
                reply,
            )
            self._write()

    def _store_step(self, step: _RecordedStep, conversation: SimConversation, reply: SimReply | None) -> None:
        """Store an answer at the position that the conversation has when the request is repeated."""
        number = self._step_by_position.pop(conversation.position_key, len(self._rules))
        if number == len(self._rules):
            self._rules.append([])
        self._rules[number].append(step)
        if reply is None:
            self._step_by_position[conversation.position_key] = number
        else:
            self._conversations.count_answer(conversation)
            self._step_by_position[conversation.position_key_after(reply)] = number

    # ---- the file

    def _write(self) -> None:
        text = write_script(Script(responses=tuple(self._script_rules())))
        draft = self._path.with_name(f"{self._path.name}.part")
        draft.write_text(text, encoding="utf-8")
        draft.replace(self._path)

    def _script_rules(self) -> Iterator[ScriptRule]:
        models = {step.pattern.model for steps in self._rules for step in steps}
        later: set[Pattern] = set()
        rules = []
        for steps in reversed(self._rules):
            entry, *turns = steps if len(models) > 1 else [_matches_any_model(step) for step in steps]
            rules.append(
                ScriptRule(
                    entry.pattern,
                    entry.response,
                    entry.failure,
                    max_matches=1 if entry.pattern in later else None,
                    turns=tuple(ScriptTurn(turn.pattern, turn.response, turn.failure) for turn in turns),
                ),
            )
            later.add(entry.pattern)
        return reversed(rules)

    # ---- without credentials

    def _pattern(self, subject: MatchSubject) -> Pattern:
        result = subject.tool_result
        return Pattern(
            text=self._text_pattern(subject.text),
            model=TextPattern(TextKind.EXACT, subject.model),
            tool_result=None if result is None else self._text_pattern(result),
            message_index=(subject.message_index, subject.message_index),
        )

    def _text_pattern(self, text: str) -> TextPattern:
        """Return a pattern for a text; if it contains a credential, for its longest part without one."""
        parts = self.redactor.redact_text(text).split(REDACTED)
        kind = TextKind.EXACT if len(parts) == 1 else TextKind.CONTAINS
        return TextPattern(kind, max(parts, key=len))

    def _redact_response(self, response: ScriptResponse | None) -> ScriptResponse | None:
        if response is None:
            return None
        redact = self.redactor
        return replace(
            response,
            text=redact.redact_text(response.text),
            reasoning=redact.redact_text(response.reasoning),
            refusal=None if response.refusal is None else redact.redact_text(response.refusal),
            tool_calls=tuple(
                ScriptedCall(call.tool, redact.redact_value(call.input)) for call in response.tool_calls
            ),
        )

    def _redact_fault(self, failure: Fault | None) -> Fault | None:
        return (
            None
            if failure is None
            else replace(failure, settings=self.redactor.redact_value(dict(failure.settings)))
        )


def _matches_any_model(step: _RecordedStep) -> _RecordedStep:
    return replace(step, pattern=replace(step.pattern, model=None))
