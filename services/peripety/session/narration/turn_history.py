"""History of a session in the narrator's prompt: earlier turns as messages that are only appended to.

A narrator that sees only a line of its last turn forgets names, promises and its own inventions. So the
prompt contains earlier turns as the conversation they were: a user message with the facts of the turn, and
an assistant message with the answer as it was narrated, dialogue and memories included. Providers charge a
tenth or less for a prompt prefix that they have seen before. The messages of a turn therefore never change,
and new ones are appended, so each turn reads nearly the whole history from the cache.

No context window is endless. When the turns given whole exceed their room, the oldest of them are *folded*:
each becomes one line of a summary, which contains the player's words, what was done, what was spoken aloud,
the beginning and the end of the narration, and the memories. A fold frees two thirds of the room, so it
happens once in many turns, and between two folds the history only grows. The summary is append-only, too.
When it exceeds its room, its oldest lines become shorter, then short, until a third of the room is free.
If that is not enough, old lines are dropped, first those without words of the player and memories. Memories
outlive that, because the session stores them.

Folding uses no model and stores nothing. It is a pure function of the turns: it starts at a turn number that
moves in steps of `_STEP`, and replays the additions since. Two processes compute the same bytes, and so does
a process that has just started. Alternatives: a summary by a model costs a call and can invent; a window
that slides by one turn changes the first message in every turn, so it never matches the cache.

Each viewer has a history of its own, as all texts are projected to what that viewer may know.
"""

from __future__ import annotations

import re
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
    list_happened,
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
_SHORT_SAID_CHARACTERS = 240
_SMALL_SAID_CHARACTERS = 160
# Characters of a narration in the lines of a folded turn, from long to short.
_LINE_CHARACTERS = (600, 200, 0)
_SMALL_LINE_CHARACTERS = (160, 80, 0)
_SPOKEN_LINES = 3
_SPOKEN_CHARACTERS = 160
_LINE_CHANGES = 3
_FIRST_PART = 2 / 3
"""Share of a shortened narration that is its beginning; the rest is its end."""
_SUMMARY_HEADING = "Earlier turns, one on each line:"
_SENTENCE_END = re.compile(r"(?<=[.!?\u2026]) +|(?<=[.!?\u2026][\"'\u201d\u2019]) +|\n+")


@dataclass(frozen=True, slots=True)
class TurnText:
    """An earlier turn as text for prompts, limited to what one viewer may know.

    Attributes:
        turn: its number.
        facts: the user message.
        answer: the assistant message; empty if the viewer has not read the narration.
        lines: the turn as a line of the summary, from long to short.
        has_words: True if the turn has words of the player or memories.
        happened: the name of its random event and the lines of its log.
    """

    turn: int
    facts: str
    answer: str
    lines: tuple[str, ...]
    has_words: bool
    happened: tuple[str, ...] = ()

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
    spoken = [event for event in turn.events if hears and isinstance(event, DialogueSpoken)]
    if spoken and not room.is_small:
        answer["visible_dialogue"] = [
            {"entity_id": event.entity_id, "utterance": event.utterance} for event in spoken
        ]
    if hears:
        answer["narrative"] = truncate_text(committed.narrative, room.narration_characters)
    if memories and hears:
        answer["hidden_memory_updates"] = memories
    told = {
        "turn": turn.turn,
        "did": [action["name"] or action["id"] for action in facts.get("actions", ())],
        "tried": [action["name"] for action in facts.get("rejected", ())],
        "said": said,
        "event": names.events[world.event_id] if world.event_id else "",
        "changed": dict(net_changes(view.project_changes(committed.changes), names.decisive)[:_LINE_CHANGES]),
        "told": committed.narrative if hears else "",
        "memories": [memory["content"] for memory in memories],
    }
    lengths = _SMALL_LINE_CHARACTERS if room.is_small else _LINE_CHARACTERS
    lines = tuple(_to_line(told, spoken, length, is_small=room.is_small) for length in lengths)
    return TurnText(
        turn.turn,
        to_json_text({"facts": facts}),
        to_json_text(answer) if answer else "",
        lines,
        bool(said or memories),
        list_happened(turn.events, names),
    )


def _to_line(
    told: Mapping[str, Any],
    spoken: Iterable[DialogueSpoken],
    characters: int,
    *,
    is_small: bool,
) -> str:
    """Return a turn as a line of the summary, with so many characters of the narration."""
    said = _SMALL_SAID_CHARACTERS if is_small else _SAID_CHARACTERS if characters else _SHORT_SAID_CHARACTERS
    narration = shorten_prose(told["told"], characters)
    heard = [
        f"{event.entity_id}: {truncate_text(event.utterance, _SPOKEN_CHARACTERS)}"
        for event in spoken
        if event.utterance not in narration
    ]
    shown = {**told, "said": truncate_text(told["said"], said), "told": narration}
    if characters:
        shown["heard"] = heard[:_SPOKEN_LINES]
    else:
        del shown["changed"]
    return to_json_text({key: value for key, value in shown.items() if value})


def shorten_prose(text: str, characters: int) -> str:
    """Shorten a narration to its first and its last sentences, with a mark between them."""
    if len(text) <= characters:
        return text
    if not characters:
        return ""
    sentences = _SENTENCE_END.split(text)
    first: list[str] = []
    room = int(characters * _FIRST_PART)
    while sentences and len(sentences[0]) <= room:
        room -= len(sentences[0]) + 1
        first.append(sentences.pop(0))
    if not first:
        return truncate_text(text, characters)
    last: list[str] = []
    room = characters - len(" ".join(first)) - 3
    while sentences and len(sentences[-1]) <= room:
        room -= len(sentences[-1]) + 1
        last.insert(0, sentences.pop())
    return " ".join([*first, *(["\u2026"] if sentences else []), *last])


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
    summary, whole = _fold(scene.history, scene.room)
    first = next((text.turn for text in (*(line.text for line in summary), *whole)), scene.turn)
    earlier = [
        memory for memory in memories_for(scene.session.memories, scene.view.viewer) if memory.turn < first
    ]
    facts = [_describe_memory(memory) for memory in earlier if memory.is_fact]
    head = last_fitting(facts, scene.room.established)
    lines = [to_json_text({"facts": head})] if head else []
    lines += [line.told for line in summary]
    messages = [ChatMessage.user("\n".join([_SUMMARY_HEADING, *lines]))] if lines else []
    for text in whole:
        messages.append(ChatMessage.user(text.facts))
        if text.answer:
            messages.append(ChatMessage.assistant(text.answer))
    notes = [_describe_memory(memory) for memory in earlier if not memory.is_fact]
    return PromptHistory(tuple(messages), last_fitting(notes, memory_bytes))


def _describe_memory(memory: NarratorMemory) -> dict[str, Any]:
    return {"turn": memory.turn, "whose": memory.owner, "about": memory.scope, "content": memory.content}


@dataclass(slots=True, eq=False)
class _SummaryLine:
    """A folded turn, as long as its level."""

    text: TurnText
    level: int = 0

    @property
    def told(self) -> str:
        return self.text.lines[self.level]

    @property
    def size(self) -> int:
        return len(self.told.encode()) + 1


def _fold(turns: Iterable[TurnText], room: PromptRoom) -> tuple[list[_SummaryLine], tuple[TurnText, ...]]:
    """Return the lines of the summary, and the turns given whole."""
    whole: deque[TurnText] = deque()
    summary: list[_SummaryLine] = []
    size = 0
    for turn in turns:
        whole.append(turn)
        size += turn.size
        if size <= room.whole_turns:
            continue
        while len(whole) > room.kept_turns and size > room.whole_turns // 3:
            oldest = whole.popleft()
            size -= oldest.size
            summary.append(_SummaryLine(oldest))
        summary = _shrink(summary, room.summary)
    return summary, tuple(whole)


def _shrink(summary: list[_SummaryLine], max_bytes: int) -> list[_SummaryLine]:
    """Shorten and drop the oldest lines of a summary that exceeds its room, until a third of it is free."""
    size = sum(line.size for line in summary)
    if size <= max_bytes:
        return summary
    enough = max_bytes * 2 // 3
    # The newer half is shortened only after the older half is short.
    half = len(summary) // 2
    older, newer = summary[:half], summary[half:]
    for lines, level in ((older, 1), (older, 2), (newer, 1), (newer, 2)):
        for line in lines:
            if size <= enough:
                return summary
            size -= line.size
            line.level = max(line.level, level)
            size += line.size
    for dropped in (*(line for line in older if not line.text.has_words), *older):
        if size <= enough:
            break
        if dropped in summary:
            size -= dropped.size
            summary.remove(dropped)
    return summary
