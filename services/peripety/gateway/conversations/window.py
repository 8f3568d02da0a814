"""How much of a history is sent to a model.

A prompt cache lives from the beginning of a prompt staying the same. So a history that has grown too long is
cut rarely and far: to half of its limit. A window that slides would rewrite the whole cache at every turn.
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
    """What is done with a history that has grown too long."""

    COMPACT = "compact"
    """Cut to half the limit at once, rarely."""
    SLIDING_WINDOW = "sliding_window"
    """Drop the oldest turns at each new one."""
    REFUSE = "refuse"
    """Refuse further turns."""


@dataclass(frozen=True, slots=True)
class HistoryPolicy:
    """How much of a conversation is sent; what was said stays stored either way.

    Attributes:
        strategy: what to do at the limit.
        max_turns: the most turns sent, the new one not counted; 0 for no limit.
        max_input_tokens: the most tokens sent, estimated; 0 for the model's context window.
    """

    strategy: HistoryStrategy = HistoryStrategy.COMPACT
    max_turns: int = 0
    max_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TurnSize:
    """What a turn takes of a prompt.

    Attributes:
        said: tokens of what the user said, estimated.
        answered: tokens of the answer, estimated.
        may_be_first: whether a prompt may begin with it: not when it begins with the results of tools.
    """

    said: int
    answered: int = 0
    may_be_first: bool = True


def first_sent(
    turns: Sequence[TurnSize], policy: HistoryPolicy, *, fixed_tokens: int = 0, context_tokens: int = 0
) -> int:
    """Return the index of the first turn to send.

    It is a function of what was said alone, and each turn of the past is looked at as it was when it was
    asked: so the same history is cut at the same places for ever. The work grows with the number of turns.

    Args:
        turns: oldest first; the last one is the one that is asked now.
        policy: the limits.
        fixed_tokens: of the system text and the tools.
        context_tokens: what the model can read; 0 when that is not known.

    Raises:
        FailedPreconditionError: the history is full, and the policy wants no part of it left out.
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
        "The history of this conversation is full: start a new one, rewind it, or fork its first turns",
        code="HISTORY_FULL",
    )
