"""Script recorder: writes answers as a script.

The file is rewritten after each answer, so that it is complete at any time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

from peripety.errors import FailedPreconditionError
from peripety.sim.patterns import Pattern, TextKind, TextPattern
from peripety.simulator.conversations import Conversations
from peripety.simulator.failures import failure_of
from peripety.simulator.record.redacting import REDACTED, Redactor
from peripety.simulator.record.scripting import scripted, spoilt
from peripety.simulator.scenario.model import Pace, Response, Rule, Scenario, ScriptedCall, Turn
from peripety.simulator.scenario.write import write_scenario
from peripety.simulator.state import Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from peripety.sim.patterns import Subject
    from peripety.simulator.conversations import Conversation
    from peripety.simulator.exchange import Exchange
    from peripety.simulator.model import Reply, Request
    from peripety.simulator.scenario.model import Failure

__all__ = ["Recorder"]


@dataclass(frozen=True, slots=True)
class _Step:
    """An answer with its prompt."""

    pattern: Pattern
    response: Response | None
    failure: Failure | None


class Recorder:
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
        self._conversations = Conversations(Table(), shared=False)
        self._rules: list[list[_Step]] = []
        self._ends: dict[str, int] = {}  # rules by the positions of conversations that may continue

    def observe(self, exchange: Exchange) -> None:
        """Record an answer of the simulator itself."""
        manner, reply = exchange.manner, exchange.reply
        failure = spoilt(manner) if exchange.error is None else failure_of(exchange.error)
        pace = None if manner.pace == Pace() else manner.pace
        response = None if reply is None else scripted(reply, pace, int(manner.delay_ms))
        self.add(exchange.request, response, failure, reply if failure is None else None)

    def add(
        self, request: Request, response: Response | None, failure: Failure | None, reply: Reply | None
    ) -> None:
        """Record an answer.

        Args:
            request: the request.
            response: the response.
            failure: the fault.
            reply: the answer as the caller is going to repeat it; None if it did not arrive intact.
        """
        if response is None and failure is None:
            return
        with self._lock:
            self.redactor.note(request.key)
            conversation = self._conversations.find(request)
            pattern = self._pattern(conversation.subject(request.model))
            self._place(_Step(pattern, self._cleaned(response), self._harmless(failure)), conversation, reply)
            self._write()

    def _place(self, step: _Step, conversation: Conversation, reply: Reply | None) -> None:
        """Store an answer at the position that the conversation has when the request is repeated."""
        number = self._ends.pop(conversation.place, len(self._rules))
        if number == len(self._rules):
            self._rules.append([])
        self._rules[number].append(step)
        if reply is None:
            self._ends[conversation.place] = number
        else:
            self._conversations.answered(conversation)
            self._ends[conversation.place_after(reply)] = number

    # ---- the file

    def _write(self) -> None:
        text = write_scenario(Scenario(responses=tuple(self._scenario_rules())))
        draft = self._path.with_name(f"{self._path.name}.part")
        draft.write_text(text, encoding="utf-8")
        draft.replace(self._path)

    def _scenario_rules(self) -> Iterator[Rule]:
        models = {step.pattern.model for steps in self._rules for step in steps}
        later: set[Pattern] = set()
        rules = []
        for steps in reversed(self._rules):
            entry, *turns = steps if len(models) > 1 else [_for_any_model(step) for step in steps]
            rules.append(
                Rule(
                    entry.pattern,
                    entry.response,
                    entry.failure,
                    max_matches=1 if entry.pattern in later else None,
                    turns=tuple(Turn(turn.pattern, turn.response, turn.failure) for turn in turns),
                )
            )
            later.add(entry.pattern)
        return reversed(rules)

    # ---- without credentials

    def _pattern(self, subject: Subject) -> Pattern:
        result = subject.tool_result
        return Pattern(
            text=self._text_pattern(subject.text),
            model=TextPattern(TextKind.EXACT, subject.model),
            tool_result=None if result is None else self._text_pattern(result),
            message_index=(subject.message_index, subject.message_index),
        )

    def _text_pattern(self, text: str) -> TextPattern:
        """Return a pattern for a text; if it contains a credential, for its longest part without one."""
        parts = self.redactor.text(text).split(REDACTED)
        kind = TextKind.EXACT if len(parts) == 1 else TextKind.CONTAINS
        return TextPattern(kind, max(parts, key=len))

    def _cleaned(self, response: Response | None) -> Response | None:
        if response is None:
            return None
        redact = self.redactor
        return replace(
            response,
            text=redact.text(response.text),
            reasoning=redact.text(response.reasoning),
            refusal=None if response.refusal is None else redact.text(response.refusal),
            tool_calls=tuple(
                ScriptedCall(call.tool, redact.value(call.input)) for call in response.tool_calls
            ),
        )

    def _harmless(self, failure: Failure | None) -> Failure | None:
        return (
            None
            if failure is None
            else replace(failure, settings=self.redactor.value(dict(failure.settings)))
        )


def _for_any_model(step: _Step) -> _Step:
    return replace(step, pattern=replace(step.pattern, model=None))
