"""Stored answers: which may be, how they are written, and how they are told again."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from peripety.gateway.model import (
    Completion,
    StopReason,
    Usage,
)
from peripety.gateway.model.replay import told_again
from peripety.gateway.writing import read_completion, write_completion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.gateway.model import GatewayEvent

__all__ = ["StoredAnswer", "at_no_cost", "decode", "encode", "may_be_stored", "replay"]


class StoredAnswer(NamedTuple):
    """An answer as it is kept.

    Attributes:
        data: the answer, written by `encode`.
        stored: when it was given, in seconds since 1970.
    """

    data: bytes
    stored: float


def may_be_stored(completion: Completion) -> bool:
    """Whether an answer is valid and came to its own end, or to a wish for tools: not cut, not refused.

    An answer that failed, or was invalid even after its repair, never becomes a completion. One to an
    advisory schema does, and then has findings without having been repaired.
    """
    is_valid = completion.repaired or not completion.findings
    return is_valid and completion.stop_reason in {StopReason.END, StopReason.TOOL_USE}


def at_no_cost(completion: Completion) -> Completion:
    """The same answer, for somebody for whom no model was called."""
    # Its own value, too: what one caller does to it is none of another's business.
    return replace(
        completion,
        value=deepcopy(completion.value),
        usage=Usage(),
        cost=0,
        cache_savings=0,
        cache_plan=None,
        calls=0,
        from_response_cache=True,
    )


def encode(completion: Completion) -> bytes:
    """Write an answer down, without what it cost."""
    return json.dumps(write_completion(at_no_cost(completion)), separators=(",", ":")).encode()


def decode(data: bytes) -> Completion:
    """Read what `encode` has written."""
    return read_completion(json.loads(data))


def replay(answer: StoredAnswer) -> Iterator[GatewayEvent]:
    """Tell a stored answer again, as the stream that it was."""
    return told_again(decode(answer.data))
