"""Response builder: turns a scripted response into the chunks that a model would have produced.

Applies the stop sequences, the token limit and the faults that change content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.llmsim.determinism import make_signature
from peripety.llmsim.faults.injection import AnswerDraft, change_answer
from peripety.llmsim.provider_rules import models
from peripety.llmsim.types import (
    BilledUsage,
    ReasoningPart,
    RefusalPart,
    SimReply,
    SimStopReason,
    TextPart,
    ToolUsePart,
)
from peripety.llmsim.wire.base import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.llmsim.determinism import SeededRng
    from peripety.llmsim.script.types import Fault, ScriptedUsage, ScriptResponse
    from peripety.llmsim.types import ReplyPart, SimRequest


def build_response(
    request: SimRequest,
    response: ScriptResponse,
    failure: Fault | None,
    *,
    rng: SeededRng,
    created: float,
    tokens_per_chunk: int,
    count_usage: Callable[[int, int], BilledUsage],
) -> SimReply:
    """Build the reply for a response, with the changes of a fault.

    Args:
        request: its `stop` and `max_tokens` truncate the answer, its `reasoning` may hide reasoning.
        response: the scripted response.
        failure: the fault.
        rng: the source of ids.
        created: the time in seconds since 1970.
        tokens_per_chunk: tokens per stream chunk.
        count_usage: returns the usage for a number of output tokens, of which some are reasoning.
    """
    composition = _ResponseBuilder(response, request, rng, tokens_per_chunk)
    said = AnswerDraft(composition.parts, composition.stop)
    if failure is not None:
        said = change_answer(
            said,
            failure,
            request.tools,
            lambda text: _join_pieces(models.split_tokens(text), tokens_per_chunk),
        )
    usage = count_usage(*_output_tokens(said.parts))
    return SimReply(
        id=rng.id(),
        created=created,
        model=request.model,
        parts=said.parts,
        stop=said.stop,
        usage=usage if response.usage is None else override_usage(usage, response.usage),
        stop_sequence=composition.stop_sequence,
    )


class _ResponseBuilder:
    """Builder of one reply.

    Args:
        response: the scripted response.
        request: its `stop` and `max_tokens` truncate the answer, its `reasoning` may hide reasoning.
        rng: the source of tool call ids.
        size: tokens per stream chunk.

    Attributes:
        parts: the parts of the reply.
        stop: the stop reason.
        stop_sequence: the matched stop sequence, with `SimStopReason.STOP_SEQUENCE`.
    """

    def __init__(self, response: ScriptResponse, request: SimRequest, rng: SeededRng, size: int) -> None:
        self._response, self._request, self._rng, self._tokens_per_chunk = response, request, rng, size
        self._tokens_left = request.max_tokens
        told = response.usage.output_tokens if response.usage else None
        if told is not None and self._tokens_left is not None and told <= self._tokens_left:
            self._tokens_left = None  # fits by its own token count
        self._exceeded = False
        self._text, self.stop_sequence = _cut_at_stop(response.text, request.stop)
        self._calls = () if self.stop_sequence else response.tool_calls
        self.parts = tuple(self._write_parts())
        self.stop = self._stop_reason()
        if self.stop is not SimStopReason.STOP_SEQUENCE:
            self.stop_sequence = None

    def _stop_reason(self) -> SimStopReason:
        if self._exceeded:
            return SimStopReason.LENGTH
        if self._response.refusal is not None:
            return SimStopReason.REFUSAL
        if self.stop_sequence is not None:
            return SimStopReason.STOP_SEQUENCE
        return self._response.stop or (SimStopReason.TOOL_USE if self._calls else SimStopReason.END)

    def _write_parts(self) -> Iterator[ReplyPart]:
        response = self._response
        if self._request.reasoning and (pieces := self._take_chunks(response.reasoning)):
            yield ReasoningPart(pieces, make_signature(response.reasoning))
        if response.refusal is not None:
            yield RefusalPart(self._take_chunks(response.refusal))
            return
        if pieces := self._take_chunks(self._text):
            yield TextPart(pieces)
        for number, call in enumerate(self._calls):
            arguments = compact_json(call.input).decode()
            # Do not begin a tool call that exceeds the token limit.
            if pieces := self._take_chunks(arguments):
                mark = make_signature(f"{call.tool} {arguments}")
                yield ToolUsePart(self._rng.id(f"call {number}"), call.tool, pieces, mark)

    def _take_chunks(self, text: str) -> tuple[str, ...]:
        """Return the chunks of the part of a text that fits into the token limit."""
        pieces = models.split_tokens(text)
        if self._tokens_left is not None:
            self._exceeded |= len(pieces) > self._tokens_left
            pieces = pieces[: self._tokens_left]
            self._tokens_left -= len(pieces)
        return _join_pieces(pieces, self._tokens_per_chunk)


def _output_tokens(parts: tuple[ReplyPart, ...]) -> tuple[int, int]:
    """Return the number of output tokens, and how many of them are reasoning."""
    reasoning = sum(models.count_tokens(part.text) for part in parts if isinstance(part, ReasoningPart))
    prose = sum(models.count_tokens(part.text) for part in parts if isinstance(part, TextPart | RefusalPart))
    calls = (part for part in parts if isinstance(part, ToolUsePart))
    return reasoning + prose + sum(
        models.count_tokens(call.name) + models.count_tokens(call.arguments_json) for call in calls
    ), reasoning


def override_usage(usage: BilledUsage, script: ScriptedUsage) -> BilledUsage:
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
    return BilledUsage(
        fresh=fresh,
        read=read,
        written=written,
        output=output,
        reasoning=min(reasoning, output),
    )


def _cut_at_stop(text: str, stops: tuple[str, ...]) -> tuple[str, str | None]:
    """Return the text before the first stop sequence, and that sequence."""
    found = [(text.index(stop), stop) for stop in stops if stop and stop in text]
    if not found:
        return text, None
    at, stop = min(found)
    return text[:at], stop


def _join_pieces(pieces: tuple[str, ...], size: int) -> tuple[str, ...]:
    if size == 1:
        return pieces
    return tuple("".join(pieces[at : at + size]) for at in range(0, len(pieces), size))
