"""History window: the part of a history that is sent to a model.

A prompt cache needs a stable prefix. A history that has grown too long is therefore cut rarely and far: to
half of its limit. A sliding window would rewrite the whole cache at every turn.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from typing import TYPE_CHECKING

from peripety.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HistoryPolicy", "HistoryStrategy", "TurnSize", "first_sent"]


class HistoryStrategy(Enum):
    """Policy for a history that has grown too long."""

    COMPACT = "compact"
    """Cut to half the limit at once, rarely."""
    SLIDING_WINDOW = "sliding_window"
    """Drop the oldest turns at every new turn."""
    REFUSE = "refuse"
    """Reject further turns."""


@dataclass(frozen=True, slots=True)
class HistoryPolicy:
    """Limits of the history window; the stored history is not affected.

    Attributes:
        strategy: what to do at the limit.
        max_turns: the maximum number of earlier turns sent; 0 for no limit.
        max_input_tokens: the maximum estimated tokens sent; 0 uses the model's context window.
    """

    strategy: HistoryStrategy = HistoryStrategy.COMPACT
    max_turns: int = 0
    max_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TurnSize:
    """Estimated prompt size of a turn.

    Attributes:
        said: tokens of the user message.
        answered: tokens of the answer.
        may_be_first: whether a prompt may start with this turn; False if it starts with tool results.
    """

    said: int
    answered: int = 0
    may_be_first: bool = True


def first_sent(
    turns: Sequence[TurnSize], policy: HistoryPolicy, *, fixed_tokens: int = 0, context_tokens: int = 0
) -> int:
    """Return the index of the first turn to send.

    Deterministic in the history alone: each past turn is evaluated as it was when requested, so a growing
    history is always cut at the same places. The work grows linearly with the number of turns.

    Args:
        turns: oldest first; the last one is the new turn.
        policy: the limits.
        fixed_tokens: tokens of the system text and the tools.
        context_tokens: the context window of the model; 0 if unknown.

    Raises:
        FailedPreconditionError: the history is full, and the policy forbids truncation.
    """
    limits = _Limits(policy.max_turns, policy.max_input_tokens or context_tokens)
    goal = limits.half() if policy.strategy is HistoryStrategy.COMPACT else limits
    before = [0, *accumulate(turn.said + turn.answered for turn in turns)]
    cuts = deque(index for index, turn in enumerate(turns) if index and turn.may_be_first)
    first = 0

    def fits(limits: _Limits, index: int) -> bool:
        tokens = fixed_tokens + before[index] - before[first] + turns[index].said
        return limits.hold(index - first, tokens)

    for index in range(len(turns)):
        if fits(limits, index):
            continue
        if policy.strategy is HistoryStrategy.REFUSE:
            raise _full()
        while cuts and cuts[0] <= index:
            first = cuts.popleft()
            if fits(goal, index):
                break
    return first


@dataclass(frozen=True, slots=True)
class _Limits:
    turns: int
    tokens: int

    def half(self) -> _Limits:
        return _Limits(-(-self.turns // 2), -(-self.tokens // 2))

    def hold(self, turns: int, tokens: int) -> bool:
        return (not self.turns or turns <= self.turns) and (not self.tokens or tokens <= self.tokens)


def _full() -> FailedPreconditionError:
    return FailedPreconditionError(
        "conversation history is full; start a new conversation, rewind it, or fork its first turns",
        code="HISTORY_FULL",
    )
