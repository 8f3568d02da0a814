"""Multi-turn conversation that writes scenarios, first from scratch and then as replacements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import ConflictError, FailedPreconditionError
from peripety.gateway.model import ResponseSchema, Spent
from peripety.gateway.objects.structured import schema_hint
from peripety.policies.compiling.answers import SCENARIOS, scenarios_read, scenarios_schema
from peripety.policies.compiling.material import as_text, conversation_about, scenario_document
from peripety.policies.compiling.merging import named_apart, request_key
from peripety.policies.feedback import feedback_message
from peripety.policies.model import GenerationTurn, ScenarioSource

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.gateway.model import ModelGateway
    from peripety.policies.model import ScenarioFeedback, TestScenario, ToolAnnotation

__all__ = ["ScenarioGeneratorSession", "generate_scenarios"]

_BEGIN = "Write scenarios for the tools, following the instructions above."
_COMPLEMENT = "These scenarios exist already. Complement them, and write none of them again:"


class ScenarioGeneratorSession:
    """Conversation about the scenarios of some tools, with feedback on earlier ones.

    A session lasts for one run. The system text never changes, so that it stays in the provider's prompt
    cache; feedback follows as further messages. A turn is only recorded with a valid response. A failed turn,
    including its repair, leaves the conversation unchanged.

    Args:
        gateway: the model gateway.
        system: the instructions with their material; identical bytes in every turn.
        annotations: the tools; a response must not use others.
        handwritten: existing scenarios, which are not written again.
        model: as in `GenerateRequest.model`.
        max_turns: the maximum number of turns; None for no limit.
        replace_corrected: True to request replacements for corrected scenarios.

    Attributes:
        max_turns: the maximum number of turns; None for no limit.
        turns: usage of the turns, oldest first, including cache reads and writes.
        model: the model of the last response, as `provider/model`; empty before the first.
    """

    def __init__(
        self,
        gateway: ModelGateway,
        system: str,
        annotations: Sequence[ToolAnnotation],
        *,
        handwritten: Sequence[TestScenario] = (),
        model: str | None = None,
        max_turns: int | None = None,
        replace_corrected: bool = False,
    ) -> None:
        self._conversation = conversation_about(gateway, system, model)
        self._schema = ResponseSchema(SCENARIOS, scenarios_schema(annotations))
        self._handwritten = tuple(handwritten)
        self._replace_corrected = replace_corrected
        self.max_turns = max_turns
        self.turns: tuple[GenerationTurn, ...] = ()
        self.model = ""

    @property
    def turn_count(self) -> int:
        """The number of completed turns."""
        return len(self.turns)

    def get_history(self) -> list[dict[str, str]]:
        """Return the messages, oldest first, as objects with `role` and `content`."""
        return [
            {"role": message.role.value, "content": message.text} for message in self._conversation.messages
        ]

    async def generate(self, on_progress: Callable[[str], None] | None = None) -> tuple[TestScenario, ...]:
        """Request scenarios in the first turn.

        Args:
            on_progress: receives a sentence about the current step.

        Returns:
            The handwritten scenarios, then the new ones with other requests.

        Raises:
            ConflictError: the session has already begun.
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        if self.turn_count:
            raise ConflictError("conversation has already begun; use regenerate", code="TURN_TAKEN")
        told = (_BEGIN, *self._existing(), schema_hint(self._schema.document))
        written = await self._turn("\n\n".join(told), on_progress)
        known = {request_key(scenario.request) for scenario in self._handwritten}
        new = (scenario for scenario in written if request_key(scenario.request) not in known)
        return (*self._handwritten, *named_apart(new, self._handwritten))

    async def regenerate(
        self, feedback: ScenarioFeedback, on_progress: Callable[[str], None] | None = None
    ) -> tuple[TestScenario, ...]:
        """Send feedback and request replacements.

        Args:
            feedback: the feedback.
            on_progress: receives a sentence about the current step.

        Returns:
            The new scenarios only; the caller merges them.

        Raises:
            FailedPreconditionError: the first turn is missing (code TURN_TOO_EARLY), or the turn limit is
                reached (code TURNS_USED_UP).
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        if not self.turn_count:
            raise FailedPreconditionError("conversation has not begun; use generate", code="TURN_TOO_EARLY")
        if self.max_turns is not None and self.turn_count >= self.max_turns:
            raise FailedPreconditionError(
                f"turn limit of {self.max_turns} reached; raise it",
                code="TURNS_USED_UP",
            )
        message = feedback_message(feedback, replace_corrected=self._replace_corrected)
        return await self._turn(message, on_progress)

    def _existing(self) -> list[str]:
        if not self._handwritten:
            return []
        lines = (as_text(scenario_document(scenario)) for scenario in self._handwritten)
        return ["\n".join((_COMPLEMENT, *lines))]

    async def _turn(
        self, message: str, on_progress: Callable[[str], None] | None
    ) -> tuple[TestScenario, ...]:
        number = self.turn_count + 1
        if on_progress is not None:
            on_progress(f"requesting scenarios, turn {number}")
        completion = await self._conversation.send(message, schema=self._schema)
        value = completion.value
        written = scenarios_read(value["scenarios"] if value else (), ScenarioSource.GENERATED)
        self.turns += (GenerationTurn(number, len(written), completion.repaired, Spent.on(completion)),)
        self.model = f"{completion.provider}/{completion.model}"
        return written


async def generate_scenarios(
    gateway: ModelGateway,
    system: str,
    annotations: Sequence[ToolAnnotation],
    *,
    handwritten: Sequence[TestScenario] = (),
    model: str | None = None,
) -> tuple[TestScenario, ...]:
    """Request scenarios once, without a session; as `ScenarioGeneratorSession.generate`.

    Without tools, the handwritten scenarios are returned without a model call.
    """
    if not annotations:
        return tuple(handwritten)
    session = ScenarioGeneratorSession(gateway, system, annotations, handwritten=handwritten, model=model)
    return await session.generate()
