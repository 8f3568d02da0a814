"""Reflection: a model call about the gaps of a category, or an assessment of the whole run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.errors import FailedPreconditionError
from peripety.gateway.model import Completed
from peripety.gateway.streams import following
from peripety.testgen.asking.questions import ASSESSMENT, REFLECTION
from peripety.testgen.events import Reflected, Reflection, ReflectionAction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.gateway.model import GenerateRequest, ModelGateway
    from peripety.testgen.loop.asking import Caller
    from peripety.testgen.loop.ledger import Reservation

__all__ = ["Looking", "told"]

_OUTPUT_TOKENS = 1_024
_ANSWERS = 2
"""One response, and one repair."""

_MOST_SAID = 10


@dataclass(frozen=True, slots=True)
class Looking:
    """A reflection or assessment.

    Attributes:
        category: the category; None for the whole run.
        request: the request.
    """

    category: str | None
    request: GenerateRequest

    @classmethod
    def back(cls, category: str | None, request: GenerateRequest) -> Looking:
        """Return the reflection on a category, or the assessment of the whole run."""
        schema = ASSESSMENT if category is None else REFLECTION
        return cls(category, replace(request, schema=schema))

    def reserve(self, caller: Caller) -> Reservation:
        """Reserve budget for the call; raises the errors of `Caller.reserve`."""
        return caller.reserve(self.request, _OUTPUT_TOKENS, _ANSWERS)

    async def ask(self, gateway: ModelGateway, caller: Caller, reservation: Reservation) -> Mapping[str, Any]:
        """Return the response of the model, valid by the schema.

        Raises:
            LimitReachedError: a limit was reached.
            PeripetyError: the call failed.
        """
        async with (
            caller.calling(self.request, reservation) as call,
            following(gateway.stream(call.request)) as events,
        ):
            async for event in caller.in_time(events):
                if isinstance(event, Completed):
                    call.completion = event.completion
        if call.completion is None or not isinstance(call.completion.value, dict):
            raise FailedPreconditionError("model response is missing", code="ANSWER_INVALID")
        return call.completion.value


def told(category: str | None, said: Mapping[str, Any], action: ReflectionAction) -> Reflected:
    """Convert the JSON response of a model to an event.

    Args:
        category: the category; None for the whole run.
        said: the response, valid by the schema of the request.
        action: the consequence of the response.
    """
    text = "\n".join([said["text"], *(f"- {gap}" for gap in said.get("gaps", ())[:_MOST_SAID])])
    reflection = Reflection(category, text, action, tuple(said["recommendations"][:_MOST_SAID]))
    return Reflected(reflection, said.get("score"))
