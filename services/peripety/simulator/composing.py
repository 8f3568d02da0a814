"""Response builder: turns a scripted response into the chunks that a model would have produced.

Applies the stop sequences, the token limit and the faults that change content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.simulator.chance import signature
from peripety.simulator.failures import Said, changed
from peripety.simulator.model import Reasoning, Refusal, Reply, Stop, Text, ToolUse, Usage
from peripety.simulator.truth import tokens
from peripety.simulator.wire.json_text import compact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.simulator.chance import Chance
    from peripety.simulator.model import Part, Request
    from peripety.simulator.scenario.model import Failure, Response, ScriptedUsage

__all__ = ["claimed", "compose"]


def compose(
    request: Request,
    response: Response,
    failure: Failure | None,
    *,
    chance: Chance,
    created: float,
    size: int,
    counted: Callable[[int, int], Usage],
) -> Reply:
    """Build the reply for a response, with the changes of a fault.

    Args:
        request: its `stop` and `max_tokens` truncate the answer, its `reasoning` may hide reasoning.
        response: the scripted response.
        failure: the fault.
        chance: the source of ids.
        created: the time in seconds since 1970.
        size: tokens per stream chunk.
        counted: returns the usage for a number of output tokens, of which some are reasoning.
    """
    composition = _Composition(response, request, chance, size)
    said = Said(composition.parts, composition.stop)
    if failure is not None:
        said = changed(said, failure, request.tools, lambda text: _joined(tokens.pieces(text), size))
    usage = counted(*_output_tokens(said.parts))
    return Reply(
        id=chance.id(),
        created=created,
        model=request.model,
        parts=said.parts,
        stop=said.stop,
        usage=usage if response.usage is None else claimed(usage, response.usage),
        stop_sequence=composition.stop_sequence,
    )


class _Composition:
    """Builder of one reply.

    Args:
        response: the scripted response.
        request: its `stop` and `max_tokens` truncate the answer, its `reasoning` may hide reasoning.
        chance: the source of tool call ids.
        size: tokens per stream chunk.

    Attributes:
        parts: the parts of the reply.
        stop: the stop reason.
        stop_sequence: the matched stop sequence, with `Stop.STOP_SEQUENCE`.
    """

    def __init__(self, response: Response, request: Request, chance: Chance, size: int) -> None:
        self._response, self._request, self._chance, self._size = response, request, chance, size
        self._left = request.max_tokens
        told = response.usage.output_tokens if response.usage else None
        if told is not None and self._left is not None and told <= self._left:
            self._left = None  # fits by its own token count
        self._exceeded = False
        self._text, self.stop_sequence = _stopped(response.text, request.stop)
        self._calls = () if self.stop_sequence else response.tool_calls
        self.parts = tuple(self._written())
        self.stop = self._why()
        if self.stop is not Stop.STOP_SEQUENCE:
            self.stop_sequence = None

    def _why(self) -> Stop:
        if self._exceeded:
            return Stop.LENGTH
        if self._response.refusal is not None:
            return Stop.REFUSAL
        if self.stop_sequence is not None:
            return Stop.STOP_SEQUENCE
        return self._response.stop or (Stop.TOOL_USE if self._calls else Stop.END)

    def _written(self) -> Iterator[Part]:
        response = self._response
        if self._request.reasoning and (pieces := self._take(response.reasoning)):
            yield Reasoning(pieces, signature(response.reasoning))
        if response.refusal is not None:
            yield Refusal(self._take(response.refusal))
            return
        if pieces := self._take(self._text):
            yield Text(pieces)
        for number, call in enumerate(self._calls):
            arguments = compact(call.input).decode()
            # Do not begin a tool call that exceeds the token limit.
            if pieces := self._take(arguments):
                mark = signature(f"{call.tool} {arguments}")
                yield ToolUse(self._chance.id(f"call {number}"), call.tool, pieces, mark)

    def _take(self, text: str) -> tuple[str, ...]:
        """Return the chunks of the part of a text that fits into the token limit."""
        pieces = tokens.pieces(text)
        if self._left is not None:
            self._exceeded |= len(pieces) > self._left
            pieces = pieces[: self._left]
            self._left -= len(pieces)
        return _joined(pieces, self._size)


def _output_tokens(parts: tuple[Part, ...]) -> tuple[int, int]:
    """Return the number of output tokens, and how many of them are reasoning."""
    reasoning = sum(tokens.count(part.text) for part in parts if isinstance(part, Reasoning))
    prose = sum(tokens.count(part.text) for part in parts if isinstance(part, Text | Refusal))
    calls = (part for part in parts if isinstance(part, ToolUse))
    return reasoning + prose + sum(
        tokens.count(call.name) + tokens.count(call.json) for call in calls
    ), reasoning


def claimed(usage: Usage, script: ScriptedUsage) -> Usage:
    """Return the usage with the counts that the script overrides; reasoning stays within the output."""
    read = usage.read if script.cache_read_tokens is None else script.cache_read_tokens
    written = dict(usage.written)
    if script.cache_write_tokens is not None:
        written = {next(iter(written), "5m"): script.cache_write_tokens}
    fresh = usage.fresh
    if script.input_tokens is not None:
        fresh = max(0, script.input_tokens - read - sum(written.values()))
    reasoning = usage.reasoning if script.reasoning_tokens is None else script.reasoning_tokens
    output = max(usage.output, reasoning) if script.output_tokens is None else script.output_tokens
    return Usage(fresh=fresh, read=read, written=written, output=output, reasoning=min(reasoning, output))


def _stopped(text: str, stops: tuple[str, ...]) -> tuple[str, str | None]:
    """Return the text before the first stop sequence, and that sequence."""
    found = [(text.index(stop), stop) for stop in stops if stop and stop in text]
    if not found:
        return text, None
    at, stop = min(found)
    return text[:at], stop


def _joined(pieces: tuple[str, ...], size: int) -> tuple[str, ...]:
    if size == 1:
        return pieces
    return tuple("".join(pieces[at : at + size]) for at in range(0, len(pieces), size))
