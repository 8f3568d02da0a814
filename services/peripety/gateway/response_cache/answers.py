"""Stored answers: which ones are stored, their codec, and their replay."""

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
    """A stored answer.

    Attributes:
        data: the answer, encoded by `encode`.
        stored: time of the answer, in seconds since 1970.
    """

    data: bytes
    stored: float


def may_be_stored(completion: Completion) -> bool:
    """Return True if an answer is valid and complete (or a tool call): not truncated, not declined.

    An answer that failed, or was invalid even after its repair, never becomes a completion. An answer under
    an advisory schema does, and then has findings without having been repaired.
    """
    is_valid = completion.repaired or not completion.findings
    return is_valid and completion.stop_reason in {StopReason.END, StopReason.TOOL_USE}


def at_no_cost(completion: Completion) -> Completion:
    """Return the same answer with zero usage, for a caller without a model call."""
    # Its value is a copy, so that a change by one caller does not affect the others.
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
    """Encode an answer, without its cost."""
    return json.dumps(write_completion(at_no_cost(completion)), separators=(",", ":")).encode()


def decode(data: bytes) -> Completion:
    """Decode an answer; inverse of `encode`."""
    return read_completion(json.loads(data))


def replay(answer: StoredAnswer) -> Iterator[GatewayEvent]:
    """Yield a stored answer as the stream of its original events."""
    return told_again(decode(answer.data))
