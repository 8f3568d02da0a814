"""Voice of a person: a model call in which the point of view is that person.

The narrator's prompt holds no secret, so it cannot play a liar. A person who speaks by a call of its own
knows its own wants, knowledge, secret and private state, and nothing that other people hide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.engine import Visibility
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest, ReasoningEffort, ResponseSchema
from peripety.session.events import DialogueSpoken
from peripety.session.narration.scenario_prompt import describe_characters, load_prompt
from peripety.session.narration.turn_context import (
    describe_facts,
    last_fitting,
    to_json_text,
    truncate_json,
    truncate_text,
)
from peripety.session.visibility import ViewerProjection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.session.events import Event
    from peripety.session.narration.tool_executor import VoiceCue
    from peripety.session.narration.turn_context import NarrationContext
    from peripety.session.turn_transaction import TurnResult


UTTERANCE_CHARACTERS = 300
_ANSWER_TOKENS = 256
_STATE_BYTES = 3_000
_FACT_BYTES = 1_500
_MEMORY_BYTES = 2_000
_LINE_BYTES = 2_000
_PREMISE_CHARACTERS = 1_000
_SCHEMA = ResponseSchema(
    "utterance",
    {
        "type": "object",
        "properties": {"utterance": {"type": "string", "maxLength": UTTERANCE_CHARACTERS}},
        "required": ["utterance"],
        "additionalProperties": False,
    },
)


def actor_request(scene: NarrationContext, cue: VoiceCue, played: TurnResult | None) -> GenerateRequest:
    """Return the request for the words of a person.

    Args:
        scene: the turn.
        cue: the person, and the occasion to speak.
        played: the result of the turn if the narrator knows it.
    """
    view = ViewerProjection(Visibility(scene.spec), cue.entity_id)
    board = scene.speculation.transaction
    events: Sequence[Event] = board.events if played is None else (*played.actions, played.world)
    tree = board.state.tree() if played is None else played.tree
    told = {
        "memories": last_fitting(list(_memories(scene, cue.entity_id)), _MEMORY_BYTES),
        "said_before": last_fitting(list(_earlier_lines(scene, cue.entity_id)), _LINE_BYTES),
        "facts": describe_facts(view, scene.names, scene.turn, events, _FACT_BYTES),
        "state": truncate_json(view.project_state(tree), _STATE_BYTES),
        "about": cue.about,
    }
    return GenerateRequest(
        system=f"{load_prompt('voice')}\n{to_json_text(_describe_person(scene, cue.entity_id))}\n",
        messages=(ChatMessage.user(to_json_text(told)),),
        schema=_SCHEMA,
        model=scene.session.narrator.model,
        answer_tokens=_ANSWER_TOKENS,
        reasoning_effort=ReasoningEffort.LOW,
    )


def _describe_person(scene: NarrationContext, entity_id: str) -> dict[str, Any]:
    """Return the person with its own texts, and the other people with their public ones."""
    people = describe_characters(scene.spec, entity_id)
    premise = scene.spec.get("premise") or ""
    return {
        "language": scene.session.narrator.language,
        "premise": truncate_text(
            premise if isinstance(premise, str) else premise["text"],
            _PREMISE_CHARACTERS,
        ),
        "you": next((each for each in people if each["id"] == entity_id), {"id": entity_id}),
        "others": [each for each in people if each["id"] != entity_id],
    }


def _memories(scene: NarrationContext, entity_id: str) -> Iterator[str]:
    """Yield what the person remembers from narrations for the same audience or for everyone.

    The narrator itself reads none of the private ones in a narration for another entity. The audience of this
    turn hears the words, so a memory from a narration for the same audience reveals no other entity's secret.
    """
    for memory in scene.session.memories:
        is_own = memory.visibility == "private" and memory.owner == entity_id
        if memory.audience in {None, scene.view.viewer} and (is_own or memory.visibility == "public"):
            yield memory.content


def _earlier_lines(scene: NarrationContext, entity_id: str) -> Iterator[str]:
    for turn in scene.recent_turns:
        for event in turn.events:
            if isinstance(event, DialogueSpoken) and event.entity_id == entity_id:
                yield event.utterance
