"""What a key may use of a model, and what is left of it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Allowance", "Bucket"]


@dataclass(frozen=True, slots=True)
class Bucket:
    """One limit: how much there is in all, how much is left, and in how many seconds it is full again."""

    limit: int
    remaining: int
    reset_seconds: float


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left after a request, for the headers that say so; None where there is no limit.

    Attributes:
        requests: requests per minute.
        tokens: input and output tokens per minute, together.
        input_tokens: input tokens per minute.
        output_tokens: output tokens per minute.
    """

    requests: Bucket | None = None
    tokens: Bucket | None = None
    input_tokens: Bucket | None = None
    output_tokens: Bucket | None = None
