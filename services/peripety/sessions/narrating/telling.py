"""Narration of one turn: converts the narrator's answers to events, and streams them to the reader."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.errors import FailedPreconditionError, InternalError
from peripety.gateway.model import Repairing, Spent, TextDelta, ToolCallDelta
from peripety.sessions.events import Degraded
from peripety.sessions.memory import remember
from peripety.sessions.model import Conduct, Resolution
from peripety.sessions.narrating.hands import Hands
from peripety.sessions.narrating.outcome import Outcomes, clean, dice_of
from peripety.sessions.narrating.prose import Draft, dialogue_of
from peripety.sessions.narrating.server import told_by_server, what_was_not_known
from peripety.sessions.stage import Anew

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence

    from peripety.errors import Finding
    from peripety.gateway.model import Completion, GatewayEvent
    from peripety.sessions.events import Event
    from peripety.sessions.mechanics import Played
    from peripety.sessions.model import Memory, RollRequest
    from peripety.sessions.narrating.scene import Scene

__all__ = ["Happening", "Telling", "Told", "invalid"]

# No answer that matches the schema is nearly as long, however it is escaped.
_ANSWER_CHARACTERS = 64 * 1024

Happening: TypeAlias = "Event | Anew"


@dataclass(frozen=True, slots=True)
class Told:
    """Result of a narration.

    Attributes:
        narrative: the whole narration.
        resolution: its origin.
        usage: usage of language models.
        model: the narrator's model as `provider/model`; empty for the fallback narration.
        memories: memories after the turn.
        conduct: statistics of the narrator.
    """

    narrative: str
    resolution: Resolution
    usage: Spent
    model: str
    memories: tuple[Memory, ...] = ()
    conduct: Conduct = field(default_factory=Conduct)


def invalid(problem: str, findings: Iterable[Finding] = ()) -> FailedPreconditionError:
    """Return the error of an invalid answer."""
    violations = [finding.violation for finding in findings]
    return FailedPreconditionError(problem, code="ANSWER_INVALID", violations=violations)


class Telling:
    """Narration of a turn in progress: converts a narrator's answers to events of the turn.

    The stage is closed before the first prose is released, so that the mechanics are sent before the prose.
    It is closed again for each answer with other mechanics: only those of the accepted Outcome hold.

    Args:
        scene: the turn.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._draft = Draft()
        self._length = 0
        self._refused_answers = 0
        self._refused_changes = 0
        self.outcomes = Outcomes(scene)
        self.opening: tuple[Happening, ...] = ()
        """Events to send before the model is called: all mechanics, unless the narrator may still act."""
        self.known: Played | None = None
        """Result of the turn if the narrator may know it before it writes."""
        if not scene.input.strip():
            self.opening = tuple(self._close())
            self.known = self._played
            scene.stage.promise(self.known.world)
        self.hands = Hands(scene, self.known)

    @property
    def conduct(self) -> Conduct:
        """Statistics of the narrator."""
        return replace(
            self.hands.conduct,
            refused_changes=self._refused_changes,
            refused_answers=self._refused_answers,
            withheld_secrets=self.outcomes.withheld_secrets,
        )

    def expect(self) -> None:
        """Prepare for the answer to another model call."""
        self._draft.restart()
        self._length = 0

    async def take(self, event: GatewayEvent) -> AsyncGenerator[Happening, None]:
        """Process the next event of an answer and yield the resulting events.

        Raises:
            FailedPreconditionError: the answer is too long (code ANSWER_INVALID).
        """
        match event:
            case TextDelta():
                self._grow(event.text)
                self._draft.feed(event.text)
                if self._draft.waits:
                    for happened in await self._decide():
                        yield happened
                for chunk in self._draft.release():
                    yield chunk
            case ToolCallDelta():
                self._grow(event.arguments_text)
                # Text beside tool calls is not a narration.
                self._draft.hold()
                for retracted in self._draft.retract("the narrator continues with tool calls"):
                    yield retracted
            case Repairing():
                self._refuse(finding.path for finding in event.findings)
                for retracted in self._draft.retract("the narrator's answer is being repaired"):
                    yield retracted
                self.expect()

    def finish(self, completion: Completion, *, repaired: bool) -> Iterator[Happening | Told]:
        """Finish a turn whose Outcome is accepted; the last item is the result."""
        outcome: Mapping[str, Any] = completion.value or {}
        narrative = clean(outcome["narrative"])
        yield from self._close(outcome.get("state_changes") or (), dice_of(outcome))
        if not self.hands.knows_the_world:
            more = what_was_not_known(self._scene, self._played)
            narrative = f"{narrative}\n\n{more}" if more else narrative
        yield from self._draft.finish(narrative)
        yield from dialogue_of(outcome)
        yield Told(
            narrative=narrative,
            resolution=Resolution.REPAIRED if repaired else Resolution.NARRATED,
            usage=Spent.on(completion),
            model=f"{completion.provider}/{completion.model}",
            memories=self._remembered(outcome.get("hidden_memory_updates") or ()),
            conduct=self.conduct,
        )

    def give_up(self, reason: str, problem: str, refused: Sequence[str] | None) -> Iterator[Happening | Told]:
        """Finish the turn with the fallback narration; the last item is the result.

        Args:
            reason: machine-readable reason.
            problem: reason for people.
            refused: paths of the errors in the last answer, if it was rejected.
        """
        if refused is not None:
            self._refuse(refused)
        yield from self._close()
        yield from self._draft.retract(problem)
        yield Degraded(reason, f"{problem}; the fallback narration is used")
        narrative = told_by_server(self._scene, self._played)
        yield from self._draft.finish(narrative)
        memories = self._scene.session.memories
        yield Told(narrative, Resolution.SERVER_RESOLVED, Spent(), "", memories, self.conduct)

    def _refuse(self, places: Iterable[str]) -> None:
        changes = (place.split("/")[2] for place in places if place.startswith("/state_changes/"))
        self._refused_answers += 1
        self._refused_changes += len(set(changes))

    def _remembered(self, updates: Sequence[Mapping[str, Any]]) -> tuple[Memory, ...]:
        scene = self._scene
        cast = [entity["id"] for entity in scene.spec.get("entities", ())]
        return remember(scene.session.memories, updates, scene.turn, cast, scene.view.viewer)

    def _grow(self, text: str) -> None:
        self._length += len(text)
        if self._length > _ANSWER_CHARACTERS:
            raise invalid("the answer is too long")

    async def _decide(self) -> Sequence[Happening]:
        """Close the stage with the mechanics before the prose if they are valid; else hold the prose back."""
        said = await self.outcomes.mechanics_in(self._draft.whole_members())
        if said is None:
            self._draft.hold()
            return ()
        mechanics = tuple(self._close(said.get("state_changes") or (), dice_of(said)))
        self._draft.open(await self.outcomes.tripwire())
        return mechanics

    def _close(
        self, changes: Sequence[Mapping[str, Any]] = (), dice: Sequence[RollRequest] = ()
    ) -> Iterator[Happening]:
        happened = self._scene.stage.close(changes, dice)
        if isinstance(happened, Anew):
            self._draft.void()
            yield happened
        else:
            yield from happened

    @property
    def _played(self) -> Played:
        """The turn as last closed."""
        played = self._scene.stage.played
        if played is None:
            raise InternalError("a turn is narrated before it was closed")
        return played
