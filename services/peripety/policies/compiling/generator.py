"""The conversation in which scenarios are written: once, and again for what did not hold."""

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
    """Writes scenarios for some tools in a conversation that remembers what was said of them.

    It lives for one run. The system text never changes, so that the provider's prompt cache keeps matching;
    what was found out comes as further messages. A turn is kept only with a valid answer: one that fails,
    its repair included, leaves the conversation as it was.

    Args:
        gateway: answers.
        system: the instructions with their material; the same, byte for byte, in every turn.
        annotations: the tools; an answer may be about no others.
        handwritten: scenarios that exist already; they are never asked for again.
        model: as in `GenerateRequest.model`.
        max_turns: the most turns; None for no limit.
        replace_corrected: whether corrected scenarios are asked for again.

    Attributes:
        max_turns: the most turns; None for no limit.
        turns: what the turns used, oldest first; their cache reads and writes among it.
        model: who gave the last answer, as `provider/model`; empty before the first.
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
        """How many turns are completed."""
        return len(self.turns)

    def get_history(self) -> list[dict[str, str]]:
        """What was said, oldest first: objects with `role` and `content`."""
        return [
            {"role": message.role.value, "content": message.text} for message in self._conversation.messages
        ]

    async def generate(self, on_progress: Callable[[str], None] | None = None) -> tuple[TestScenario, ...]:
        """Ask for scenarios, in the first turn.

        Args:
            on_progress: told in a sentence what is being done.

        Returns:
            The handwritten ones, then the new ones whose request is none of theirs.

        Raises:
            ConflictError: this was asked before.
            PeripetyError: what `ModelGateway.stream` raises.
        """
        if self.turn_count:
            raise ConflictError("This conversation has begun; use regenerate", code="TURN_TAKEN")
        told = (_BEGIN, *self._existing(), schema_hint(self._schema.document))
        written = await self._turn("\n\n".join(told), on_progress)
        known = {request_key(scenario.request) for scenario in self._handwritten}
        new = (scenario for scenario in written if request_key(scenario.request) not in known)
        return (*self._handwritten, *named_apart(new, self._handwritten))

    async def regenerate(
        self, feedback: ScenarioFeedback, on_progress: Callable[[str], None] | None = None
    ) -> tuple[TestScenario, ...]:
        """Say what was found out, and ask for scenarios in place of what did not hold.

        Args:
            feedback: what was found out.
            on_progress: told in a sentence what is being done.

        Returns:
            The new scenarios only; `merging.merged` puts them in their places.

        Raises:
            FailedPreconditionError: nothing was generated yet (code TURN_TOO_EARLY), or there may be no
                further turn (code TURNS_USED_UP).
            PeripetyError: what `ModelGateway.stream` raises.
        """
        if not self.turn_count:
            raise FailedPreconditionError("Nothing was generated yet", code="TURN_TOO_EARLY")
        if self.max_turns is not None and self.turn_count >= self.max_turns:
            raise FailedPreconditionError(
                f"The {self.max_turns} turns of this conversation are used up; allow more",
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
            on_progress(f"asking for scenarios, turn {number}")
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
    """Ask for scenarios once, for who needs no conversation; as `ScenarioGeneratorSession.generate`.

    Without tools nothing is asked, and the handwritten ones are returned.
    """
    if not annotations:
        return tuple(handwritten)
    session = ScenarioGeneratorSession(gateway, system, annotations, handwritten=handwritten, model=model)
    return await session.generate()
