"""Fault injection: selects the fault of a request, and applies faults that change or replace the answer.

Sources are injected faults, script-wide faults and the faults of one rule. A schedule selects the matches
at which a fault occurs: all of them, the first ones, some of the next ones, or each with a probability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety import engine
from peripety.engine.schema_validation import validate_against_schema
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.provider_rules import models
from peripety.llmsim.script.types import Fault
from peripety.llmsim.types import (
    ApiError,
    ApiErrorKind,
    RefusalPart,
    ReplyPart,
    RetryForm,
    RetryHint,
    SimStopReason,
    SimTool,
    TextPart,
    ToolUsePart,
)
from peripety.llmsim.wire.base import compact_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.llmsim.conversations import SimConversation, SimConversations
    from peripety.llmsim.script.types import Script


_FEISTEL_ROUNDS = 6


def occurs(fault: Fault, ordinal: int, draw: Callable[[int], int]) -> bool:
    """Return True if a match fails.

    Args:
        fault: its count or probability.
        ordinal: number of earlier matches of the same place, in the counting scope.
        draw: returns an unsigned 64-bit integer per index; the same for every match of the scope.
    """
    if fault.probability is not None:
        return _to_fraction(draw(ordinal)) < fault.probability
    if fault.times is None:
        return True
    if fault.of is None:
        return ordinal < fault.times
    return ordinal < fault.of and _shuffled_position(ordinal, fault.of, draw) < fault.times


def _shuffled_position(ordinal: int, count: int, draw: Callable[[int], int]) -> int:
    """Return the position of an ordinal in a pseudo-random permutation of the first `count` numbers.

    A Feistel network permutes all numbers of that many bits. Results out of range are permuted again (cycle
    walking). Each position costs the same, without a list of all of them.
    """
    half = ((count - 1).bit_length() + 1) // 2 or 1
    mask = (1 << half) - 1
    place = ordinal
    while True:
        left, right = place >> half, place & mask
        for turn in range(_FEISTEL_ROUNDS):
            left, right = right, left ^ (draw(turn << half | right) & mask)
        place = left << half | right
        if place < count:
            return place


def _to_fraction(value: int) -> float:
    return (value >> 11) * 2.0**-53


@dataclass(slots=True)
class InjectedFault:
    """A fault injected at run time, and the number of requests that it has seen."""

    name: str
    fault: Fault
    requests: int = 0


class FaultSelector:
    """Selector of the fault that occurs, if any.

    Args:
        script: the seed and the script-wide faults.
        conversations: counts the occasions.
        injected: faults that precede those of the script; they count the requests of all conversations.
    """

    def __init__(
        self,
        script: Script,
        conversations: SimConversations,
        injected: list[InjectedFault],
    ) -> None:
        self._script = script
        self._conversations = conversations
        self._injected = injected

    def select_general(self, conversation: SimConversation) -> Fault | None:
        """Return the first injected or script-wide fault that occurs; None if none does."""
        for injected in self._injected:
            ordinal, injected.requests = injected.requests, injected.requests + 1
            if occurs(injected.fault, ordinal, partial(self._draw, injected.name)):
                return injected.fault
        for number, failure in enumerate(self._script.failures):
            if self.is_due(conversation, f"failures[{number}]", failure):
                return failure
        return None

    def is_due(self, conversation: SimConversation, name: str, fault: Fault) -> bool:
        """Return True if a fault occurs on this occasion. Occasions are counted per name."""
        stream, ordinal = self._conversations.next_fault_occasion(conversation, name)
        return occurs(fault, ordinal, partial(self._draw, stream))

    def _draw(self, stream: str, index: int) -> int:
        return engine.draw(self._script.seed, stream, 0, index)


class AnswerDraft(NamedTuple):
    """Content and stop reason of an answer."""

    parts: tuple[ReplyPart, ...]
    stop: SimStopReason


def change_answer(
    draft: AnswerDraft,
    fault: Fault,
    tools: Sequence[SimTool],
    split: Callable[[str], tuple[str, ...]],
) -> AnswerDraft:
    """Return the content changed by a fault; the same content if the fault does not affect it.

    Args:
        draft: the scripted content; empty if nothing was scripted.
        fault: the fault.
        tools: the available tools.
        split: splits a text into stream chunks.
    """
    settings = fault.settings
    match fault.type:
        case "refusal":
            draft = AnswerDraft((RefusalPart(split(settings["message"])),), SimStopReason.REFUSAL)
        case "partial_response":
            draft = AnswerDraft((TextPart(split(settings["partial_text"])),), SimStopReason.END)
        case "length":
            draft = AnswerDraft(_first_tokens(draft.parts, settings["tokens"], split), SimStopReason.LENGTH)
        case "content_filter":
            half = sum(models.count_tokens(_part_text(part)) for part in draft.parts) // 2
            draft = AnswerDraft(_first_tokens(draft.parts, half, split), SimStopReason.CONTENT_FILTER)
        case "truncated_arguments":
            draft = _truncate_arguments(draft, split)
        case "invalid_arguments":
            draft = draft._replace(parts=tuple(_invalidate_call(part, tools, split) for part in draft.parts))
    return draft


def _part_text(part: ReplyPart) -> str:
    return "".join(part.pieces)


def _first_tokens(
    parts: Sequence[ReplyPart],
    limit: int,
    split: Callable[[str], tuple[str, ...]],
) -> tuple[ReplyPart, ...]:
    """Return the beginning of an answer that fits into a number of tokens."""
    kept: list[ReplyPart] = []
    for part in parts:
        cut = models.split_tokens(_part_text(part))
        if limit < len(cut):
            if limit:
                kept.append(replace(part, pieces=split("".join(cut[:limit]))))
            break
        kept.append(part)
        limit -= len(cut)
    return tuple(kept)


def _truncate_arguments(draft: AnswerDraft, split: Callable[[str], tuple[str, ...]]) -> AnswerDraft:
    calls = [place for place, part in enumerate(draft.parts) if isinstance(part, ToolUsePart)]
    if not calls:
        return draft
    *before, last = draft.parts[: calls[-1] + 1]
    arguments = _part_text(last)
    return AnswerDraft(
        (*before, replace(last, pieces=split(arguments[: (len(arguments) + 1) // 2]))),
        SimStopReason.LENGTH,
    )


def _invalidate_call(
    part: ReplyPart,
    tools: Sequence[SimTool],
    split: Callable[[str], tuple[str, ...]],
) -> ReplyPart:
    if not isinstance(part, ToolUsePart):
        return part
    schema = next((tool.schema for tool in tools if tool.name == part.name), {})
    attempts = list(_argument_variants(part.arguments))
    wrong = next((value for value in attempts if not _is_valid(value, schema)), attempts[0])
    return replace(part, pieces=split(compact_json(wrong).decode()))


def _is_valid(value: Any, schema: Mapping[str, Any]) -> bool:
    try:
        return not validate_against_schema(schema, value)
    except ValueError:
        return True  # an invalid schema rejects nothing


def _argument_variants(arguments: Any) -> Iterator[Any]:
    """Yield variations of the scripted arguments, the most likely model errors first."""
    if isinstance(arguments, dict):
        for name, value in arguments.items():
            yield arguments | {name: 0 if isinstance(value, str) else str(value)}
        for name in arguments:
            yield {key: value for key, value in arguments.items() if key != name}
        yield arguments | {"unexpected": True}
    yield [arguments]


_ERROR_BUILDERS = {
    "auth_error": ApiErrorKind.AUTHENTICATION,
    "permission_denied": ApiErrorKind.PERMISSION,
    "not_found": ApiErrorKind.NOT_FOUND,
    "invalid_request": ApiErrorKind.INVALID_REQUEST,
    "conflict": ApiErrorKind.CONFLICT,
    "too_large": ApiErrorKind.TOO_LARGE,
    "rate_limit": ApiErrorKind.RATE_LIMIT,
    "out_of_credits": ApiErrorKind.BILLING,
    "overloaded": ApiErrorKind.OVERLOADED,
    "unavailable": ApiErrorKind.UNAVAILABLE,
    "server_error": ApiErrorKind.SERVER,
    "timeout": ApiErrorKind.TIMEOUT,
}


def fault_error(fault: Fault, *, stream: bool) -> ApiError | None:
    """Return the error that a fault answers with; None if the fault is not an error.

    Args:
        fault: the fault.
        stream: True if the answer would be streamed.
    """
    if fault.type in _ERROR_BUILDERS:
        return _build_error(fault.type, fault.settings)
    if fault.type == "error_in_stream" and not stream:
        return embedded_error(fault)
    return None


def embedded_error(fault: Fault) -> ApiError:
    """Return the error that arrives inside an answer, for `error_in_200` and `error_in_stream`."""
    error = fault.settings["error"]
    settings = dict(KINDS[error].default_settings)
    if fault.settings["message"] is not None:
        settings["message"] = fault.settings["message"]
    return _build_error(error, settings)


def fault_of_error(error: ApiError) -> Fault | None:
    """Return the fault that produces an error; None if no fault does."""
    name = next((name for name, kind in _ERROR_BUILDERS.items() if kind is error.kind), None)
    if name is None:
        return None
    told: dict[str, Any] = {"message": error.message, "param": error.param, "status": error.status}
    if error.retry is not None:
        told |= {"retry_after": error.retry.seconds, "form": error.retry.form.value}
    known = KINDS[name].default_settings
    given = {key: value for key, value in told.items() if key in known and value is not None}
    return Fault(name, {**known, **given})


def _build_error(name: str, settings: Mapping[str, Any]) -> ApiError:
    after = settings.get("retry_after")
    return ApiError(
        _ERROR_BUILDERS[name],
        settings["message"],
        param=settings.get("param"),
        retry=None if after is None else RetryHint(after, RetryForm(settings["form"])),
        status=settings.get("status"),
    )
