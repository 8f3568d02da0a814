"""History of a session in the narrator's prompt: earlier turns as messages that are only appended to.

A narrator that sees only a line of its last turn forgets names, promises and its own inventions. So the
prompt contains earlier turns as the conversation they were: a user message with the facts of the turn, and
an assistant message with the answer as it was narrated, dialogue and memories included. Providers charge a
tenth or less for a prompt prefix that they have seen before. The messages of a turn therefore never change,
and new ones are appended, so each turn reads nearly the whole history from the cache.

No context window is endless. When the turns given whole exceed their room, the oldest of them are *folded*:
each becomes one line of a summary, which contains the player's words, what was done, the beginning of the
narration and the memories. A fold frees two thirds of the room, so it happens once in many turns, and
between two folds the history only grows. The summary is append-only, too. When it exceeds its room, all its
lines become short; if that is not enough, the older half is dropped. Memories outlive that, because the
session stores them.

Folding uses no model and stores nothing. It is a pure function of the turns: it starts at a turn number that
moves in steps of `_STEP`, and replays the additions since. Two processes compute the same bytes, and so does
a process that has just started. Alternatives: a summary by a model costs a call and can invent; a window
that slides by one turn changes the first message in every turn, so it never matches the cache.

Each viewer has a history of its own, as all texts are projected to what that viewer may know.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.gateway.types.message import ChatMessage
from peripety.session.events import DialogueSpoken, Rolled
from peripety.session.memory import memories_for
from peripety.session.narration.turn_context import (
    describe_facts,
    format_roll,
    key_events,
    last_fitting,
    net_changes,
    to_json_text,
    truncate_text,
)
from peripety.session.types import NarratorMemory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.session.narration.prompt_room import PromptRoom
    from peripety.session.narration.turn_context import NarrationContext, TurnNames
    from peripety.session.types import CommittedTurn
    from peripety.session.visibility import ViewerProjection


@dataclass(frozen=True, slots=True)
class PromptHistory:
    """History of a session as a prompt contains it.

    Attributes:
        messages: the summary, then the newest turns whole.
        memories: the newest memories, other than facts, of turns that the messages do not contain.
    """

    messages: tuple[ChatMessage, ...]
    memories: list[dict[str, Any]]


_STEP = 32
_STEPS_BACK = 2
_SAID_CHARACTERS = 400
_LINE_CHARACTERS = 200
_SHORT_SAID_CHARACTERS = 160
_LINE_CHANGES = 3
_SUMMARY_HEADING = "Earlier turns, one on each line:"


@dataclass(frozen=True, slots=True)
class TurnText:
    """An earlier turn as text for prompts, limited to what one viewer may know.

    Attributes:
        turn: its number.
        facts: the user message.
        answer: the assistant message; empty if the viewer has not read the narration.
        line: the turn as a line of the summary.
        short_line: the same without the narration.
    """

    turn: int
    facts: str
    answer: str
    line: str
    short_line: str

    @property
    def size(self) -> int:
        """Bytes of the two messages."""
        return len(self.facts.encode()) + len(self.answer.encode())


def first_turn_of_history(turn: int) -> int:
    """Return the first turn that the history before a turn contains."""
    return max(0, (turn - 1) // _STEP - _STEPS_BACK) * _STEP + 1


def render_turn(
    turn: CommittedTurn,
    view: ViewerProjection,
    names: TurnNames,
    room: PromptRoom,
) -> TurnText:
    """Render a committed turn for one viewer."""
    accepted, world, committed = key_events(turn)
    hears = view.can_read_narration(turn.pov)
    said = accepted.input if hears else ""
    rolls = [event.roll for event in turn.events if isinstance(event, Rolled)] if hears else []
    facts = describe_facts(view, names, turn.turn, turn.events, room.facts)
    if world.status.kind == "ongoing":
        del facts["status"]
    facts = {name: value for name, value in facts.items() if value}
    facts |= {"rolls": [format_roll(roll) for roll in rolls]} if rolls else {}
    facts |= {"input": truncate_text(said, _SAID_CHARACTERS)} if said else {}
    memories = _memories_of(turn, view.viewer)
    answer: dict[str, Any] = {}
    if hears:
        answer["narrative"] = truncate_text(committed.narrative, room.narration_characters)
        spoken = [event for event in turn.events if isinstance(event, DialogueSpoken)]
        if spoken and not room.is_small:
            answer["visible_dialogue"] = [
                {"entity_id": event.entity_id, "utterance": event.utterance} for event in spoken
            ]
        if memories:
            answer["hidden_memory_updates"] = memories
    done = [action["name"] or action["id"] for action in facts.get("actions", ())]
    short = {
        "turn": turn.turn,
        "did": done,
        "said": truncate_text(said, _SHORT_SAID_CHARACTERS),
        "event": names.events[world.event_id] if world.event_id else "",
        "memories": [memory["content"] for memory in memories],
    }
    long = {
        **short,
        "said": truncate_text(said, _SAID_CHARACTERS if not room.is_small else _SHORT_SAID_CHARACTERS),
        "changed": dict(net_changes(view.project_changes(committed.changes), names.decisive)[:_LINE_CHANGES]),
        "told": truncate_text(committed.narrative, min(_LINE_CHARACTERS, room.narration_characters))
        if hears
        else "",
    }
    return TurnText(
        turn.turn,
        to_json_text({"facts": facts}),
        to_json_text(answer) if answer else "",
        _to_line(long),
        _to_line(short),
    )


def _to_line(summary: Mapping[str, Any]) -> str:
    return to_json_text({key: value for key, value in summary.items() if value})


def _memories_of(turn: CommittedTurn, viewer: str | None) -> list[dict[str, Any]]:
    """Return the memories that a turn added and the viewer may know, as the narrator wrote them."""
    added = [memory for memory in turn.memories or () if isinstance(memory, NarratorMemory)]
    return [
        {
            "scope": memory.scope,
            "target_id": memory.owner,
            "content": memory.content,
            "visibility": memory.visibility,
        }
        for memory in memories_for(added, viewer)
    ]


def render_history(scene: NarrationContext, memory_bytes: int) -> PromptHistory:
    """Return the history before a turn: the summary and the newest turns whole, and older memories.

    Args:
        scene: the turn.
        memory_bytes: size limit of the memories.
    """
    folded, whole, long_from = _fold(scene.history, scene.room)
    first = next((text.turn for text in (*folded, *whole)), scene.turn)
    earlier = [
        memory for memory in memories_for(scene.session.memories, scene.view.viewer) if memory.turn < first
    ]
    facts = [_describe_memory(memory) for memory in earlier if memory.is_fact]
    head = last_fitting(facts, scene.room.summary)
    lines = [to_json_text({"facts": head})] if head else []
    lines += [text.line if place >= long_from else text.short_line for place, text in enumerate(folded)]
    messages = [ChatMessage.user("\n".join([_SUMMARY_HEADING, *lines]))] if lines else []
    for text in whole:
        messages.append(ChatMessage.user(text.facts))
        if text.answer:
            messages.append(ChatMessage.assistant(text.answer))
    notes = [_describe_memory(memory) for memory in earlier if not memory.is_fact]
    return PromptHistory(tuple(messages), last_fitting(notes, memory_bytes))


def _describe_memory(memory: NarratorMemory) -> dict[str, Any]:
    return {"turn": memory.turn, "whose": memory.owner, "about": memory.scope, "content": memory.content}


def _fold(
    turns: Iterable[TurnText],
    room: PromptRoom,
) -> tuple[list[TurnText], tuple[TurnText, ...], int]:
    """Return the turns of the summary, those given whole, and the index of the first long line."""
    whole: deque[TurnText] = deque()
    folded: list[TurnText] = []
    long_from = size = lines_size = 0
    for turn in turns:
        whole.append(turn)
        size += turn.size
        if size <= room.whole_turns:
            continue
        while len(whole) > room.kept_turns and size > room.whole_turns // 3:
            oldest = whole.popleft()
            size -= oldest.size
            lines_size += len(oldest.line.encode())
            folded.append(oldest)
        if lines_size > room.summary:
            lines_size, long_from = _short_size(folded), len(folded)
        if lines_size > room.summary:
            folded = folded[len(folded) // 2 :]
            lines_size, long_from = _short_size(folded), len(folded)
    return folded, tuple(whole), long_from


def _short_size(turns: Iterable[TurnText]) -> int:
    return sum(len(turn.short_line.encode()) for turn in turns)
