"""Batch decisions of a policy, with an error per invalid request."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from peripety.errors import FieldViolation, InvalidArgumentError, PeripetyError
from peripety.sim import Decided, Policy, ToolRequest
from peripety.tasks import aside

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Outcome", "decisions", "placed"]

_INDEX = re.compile(r"^requests\[(\d+)\]")

Outcome: TypeAlias = Decided | PeripetyError
"""A decision, or the error that prevented it, which clients must treat as a denial."""


async def decisions(policy: Policy, asked: Sequence[ToolRequest | PeripetyError], size: int) -> list[Outcome]:
    """Return the decision of a policy for each request.

    Args:
        policy: the policy.
        asked: the requests; errors from parsing are returned in their place.
        size: the size of the requests in bytes.
    """
    return await aside(partial(_decisions, policy, asked), size + len(policy.document))


def _decisions(policy: Policy, asked: Sequence[ToolRequest | PeripetyError]) -> list[Outcome]:
    sound = [request for request in asked if isinstance(request, ToolRequest)]
    decided = iter(_decided(policy, sound))
    return [one if isinstance(one, PeripetyError) else next(decided) for one in asked]


def _decided(policy: Policy, requests: Sequence[ToolRequest]) -> Sequence[Outcome]:
    try:
        return policy.decide_many(requests)
    except InvalidArgumentError as error:
        if len(requests) == 1:
            return [placed(error, ".request")]
        # Few requests are invalid, if any: bisection decides valid halves in one batch.
        middle = len(requests) // 2
        return [*_decided(policy, requests[:middle]), *_decided(policy, requests[middle:])]


def placed(error: InvalidArgumentError, field: str) -> InvalidArgumentError:
    """Translate the field paths of an engine error to those of a request message.

    Args:
        error: the error.
        field: path of a request in the message, with `{}` for its index.
    """
    violations = [
        FieldViolation(_INDEX.sub(lambda found: field.format(found[1]), wrong.field), wrong.reason)
        for wrong in error.violations
    ]
    return InvalidArgumentError(error.message, code=error.code, violations=violations)
