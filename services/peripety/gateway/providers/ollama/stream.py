"""Decoder of the lines of an Ollama answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.gateway.model import ProviderState, Reasoning, StopReason, Usage
from peripety.gateway.providers.assembling import Assembly
from peripety.gateway.providers.base import Finished
from peripety.gateway.providers.earlier_turns import CallIds
from peripety.gateway.providers.fields import count_in, list_in, object_in, parse_object, text_in, truncated
from peripety.gateway.providers.ollama.messages import ISSUER
from peripety.gateway.tool_names import ToolNames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.gateway.model import Part
    from peripety.gateway.providers.base import Call, Delta
    from peripety.gateway.providers.failures import Failures

__all__ = ["OllamaStream"]

_STOP_REASONS = {"stop": StopReason.END, "length": StopReason.LENGTH}


class OllamaStream:
    """State of one answer, which ends with a line marked as done.

    Unknown fields are ignored; a known one of the wrong type is an error.

    Args:
        failures: converts errors inside the stream.
        call: the call that is answered.
    """

    def __init__(self, failures: Failures, call: Call) -> None:
        self._failures = failures
        self._model = call.model
        self._names = ToolNames.of(call.request)
        self._ids = CallIds(call.request.messages)
        self._assembly = Assembly()
        self._stop_reason = StopReason.OTHER
        self._usage = Usage()
        self.done = False

    @property
    def complete(self) -> bool:
        """Return True if the whole answer has arrived."""
        return self.done

    def feed(self, data: str) -> Sequence[Delta]:
        """Decode a line; return the deltas.

        Raises:
            PeripetyError: the server reports an error.
            UnavailableError: the line is invalid.
        """
        if self.done:
            return ()
        line = parse_object(data)
        if line.get("error"):
            raise self._failures.in_stream(line["error"])
        self._model = text_in(line.get("model")) or self._model
        if line.get("done") is True:
            self._end(line)
        return self._read(object_in(line.get("message")))

    def finish(self) -> Finished:
        """Return the end of the answer.

        Raises:
            UnavailableError: the stream was truncated.
        """
        if not self.done:
            raise truncated("before its last line")
        parts, reason = self._assembly.end(self._stop_reason)
        return Finished((*parts, *_thoughts(parts)), reason, self._usage, self._model)

    def _end(self, line: Mapping[str, Any]) -> None:
        self.done = True
        self._stop_reason = _STOP_REASONS.get(text_in(line.get("done_reason")), StopReason.OTHER)
        self._usage = Usage(count_in(line.get("prompt_eval_count")), count_in(line.get("eval_count")))

    def _read(self, message: Mapping[str, Any]) -> list[Delta]:
        deltas = self._assembly.add_reasoning(text_in(message.get("thinking")))
        deltas += self._assembly.add_text(text_in(message.get("content")))
        for call in list_in(message.get("tool_calls")):
            deltas += self._read_call(object_in(object_in(call).get("function")))
        return deltas

    def _read_call(self, function: Mapping[str, Any]) -> list[Delta]:
        name = self._names.from_wire(text_in(function.get("name")))
        growing = self._assembly.open_call(self._ids.next(), name)
        arguments = object_in(function.get("arguments"))
        written = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        return self._assembly.add_arguments(growing, written)


def _thoughts(parts: Sequence[Part]) -> list[ProviderState]:
    """Return the model's reasoning in the form that it requires back."""
    thoughts = "".join(part.text for part in parts if isinstance(part, Reasoning))
    return [ProviderState(ISSUER, thoughts.encode())] if thoughts else []
