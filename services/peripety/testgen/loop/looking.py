"""Looking back: what is missing in a category, and how good the whole is, in a model's opinion."""

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
"""One, and another where it has to be repaired."""

_MOST_SAID = 10


@dataclass(frozen=True, slots=True)
class Looking:
    """A question that looks back.

    Attributes:
        category: what at; None for the whole.
        request: what is asked.
    """

    category: str | None
    request: GenerateRequest

    @classmethod
    def back(cls, category: str | None, request: GenerateRequest) -> Looking:
        """The question whose answer is a reflection, or an assessment of the whole."""
        schema = ASSESSMENT if category is None else REFLECTION
        return cls(category, replace(request, schema=schema))

    def reserve(self, caller: Caller) -> Reservation:
        """Set aside what it may use; raises what `Caller.reserve` raises."""
        return caller.reserve(self.request, _OUTPUT_TOKENS, _ANSWERS)

    async def ask(self, gateway: ModelGateway, caller: Caller, reservation: Reservation) -> Mapping[str, Any]:
        """What the model says, valid by the schema.

        Raises:
            LimitReachedError: a limit was met.
            PeripetyError: the question failed.
        """
        async with (
            caller.calling(self.request, reservation) as call,
            following(gateway.stream(call.request)) as events,
        ):
            async for event in caller.in_time(events):
                if isinstance(event, Completed):
                    call.completion = event.completion
        if call.completion is None or not isinstance(call.completion.value, dict):
            raise FailedPreconditionError("The model gave no answer", code="ANSWER_INVALID")
        return call.completion.value


def told(category: str | None, said: Mapping[str, Any], action: ReflectionAction) -> Reflected:
    """What was said, as an event.

    Args:
        category: what it is about; None for the whole.
        said: by the schema of the question.
        action: what it leads to.
    """
    text = "\n".join([said["text"], *(f"- {gap}" for gap in said.get("gaps", ())[:_MOST_SAID])])
    reflection = Reflection(category, text, action, tuple(said["recommendations"][:_MOST_SAID]))
    return Reflected(reflection, said.get("score"))
