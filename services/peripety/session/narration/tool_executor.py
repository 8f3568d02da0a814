"""Execution of the narrator's tool calls: actions for the player's input, state queries and dice.

The engine decides about every call at once, and executed calls are not undone. A result is short JSON; the
result of a failed call explains how to correct it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.engine.schema_validation import validate_against_schema
from peripety.errors import PeripetyError
from peripety.gateway.types.message import Tool, ToolResult
from peripety.scenario.action_tools import ROLL, ScenarioTool, scenario_tools
from peripety.session.events import encode_value
from peripety.session.memory import memories_for
from peripety.session.narration.claims.english import split_sentences
from peripety.session.narration.scenario_prompt import list_characters
from peripety.session.narration.secret_filter import find_leaks
from peripety.session.narration.turn_context import (
    count_repetitions,
    describe_epilogue,
    describe_place,
    describe_promises,
    list_happened,
    to_json_text,
    truncate_json,
)
from peripety.session.questions.answers import answer_question
from peripety.session.questions.session_record import find_mentions
from peripety.session.types import DieRollRequest, NarratorStats, PlayerAction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peripety.engine import Change, LogLine
    from peripety.gateway.types.message import ToolCall
    from peripety.session.events import ActionResolved, Event
    from peripety.session.narration.turn_context import NarrationContext, ScenarioRules
    from peripety.session.questions.session_record import SessionRecord
    from peripety.session.turn_transaction import TurnResult


NO_ACTION, ASK_PLAYER, ASK_RECORD, VOICE = "no_action", "ask_player", "ask_record", "voice"
_MAX_EXECUTED_CALLS = 16
"""Maximum number of calls of one answer that are executed."""
_MAX_ANSWERED_CALLS = 64
"""Maximum number of calls of one answer that get a result."""
_MAX_MENTIONS = 4
_MAX_VOICES = 4
"""Maximum number of utterances of a turn."""
_QUESTION_CHARACTERS = 300
_CUE_CHARACTERS = 300
_MAX_KEPT_REJECTIONS = 4
"""Maximum number of rejected actions in the record of a turn without an action."""
_MAX_ACTIONS = 16
"""Maximum number of actions of a turn, including the player's.

A scenario with solutions is measured at one action in a turn, so words of its player lead to one.
"""
_ARGUMENTS_CHARACTERS = 16 * 1024
_NAME_CHARACTERS = 64
_MAX_LISTED_TOOLS = 24
_RESULT_CHARACTERS = 4_000
# The changes of a turn are sent in one message.
_RECORD_BYTES = 512 * 1024
_CACHED_VERSIONS = 64


class _ToolCallRejectedError(Exception):
    """A rejected call; the text explains how to correct it."""


@dataclass(frozen=True, slots=True)
class VoiceCue:
    """Call of the tool that lets a person speak.

    Attributes:
        place: index of the call in its answer.
        entity_id: the person.
        about: the occasion to speak.
    """

    place: int
    entity_id: str
    about: str


class NarratorToolExecutor:
    """Executor of the tool calls of one turn.

    Args:
        scene: the turn.
        played: the result of the turn if the narrator knows it; None while it may still act.

    Attributes:
        stats: statistics of the calls.
        question: the question to the player, if the narrator does not understand its words.
        cues: the calls of the last round that let a person speak; their results are still empty.
        record: the record of the earlier turns, from which `ask_record` answers; None before it is read.
    """

    def __init__(self, scene: NarrationContext, played: TurnResult | None) -> None:
        self._scene = scene
        voiced_for = scene.view.viewer if scene.has_actors else _NO_ACTORS
        self._tools = _tools_by_name(scene.rules, voiced_for, has_record=not scene.room.is_small)
        self._known_result = played
        self._pending_result: TurnResult | None = None
        self._is_closed = self._may_ask = False
        self._rejected_actions: list[PlayerAction] = []
        self._voices = 0
        self.stats = NarratorStats()
        self.question: str | None = None
        self.cues: list[VoiceCue] = []
        self.record: SessionRecord | None = None

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The offered tools; the same in every turn of a scenario."""
        return tuple(one.tool for one in self._tools.values())

    @property
    def has_seen_outcome(self) -> bool:
        """True if the narrator has seen the result of the turn."""
        return self._known_result is not None

    @property
    def known_result(self) -> TurnResult | None:
        """The result of the turn if the narrator has seen it."""
        return self._known_result

    def needs_record(self, calls: Sequence[ToolCall]) -> bool:
        """Return True if calls need the record of earlier turns and it is not read yet."""
        return self.record is None and any(call.name == ASK_RECORD for call in calls)

    def can_execute(self, calls: Sequence[ToolCall], answered: Iterable[str]) -> bool:
        """Return True if the calls of an answer can get results: not too many, and with unique ids.

        Args:
            calls: the calls.
            answered: ids of earlier calls.
        """
        ids = {call.call_id for call in calls}
        taken = len(calls) <= _MAX_ANSWERED_CALLS and len(ids) == len(calls) and ids.isdisjoint(answered)
        if not taken:
            self.reject(calls)
        return taken

    def reject(self, calls: Sequence[ToolCall]) -> None:
        """Count calls that get no result."""
        self._count(tool_calls=len(calls), refused_calls=len(calls))

    def execute(
        self,
        calls: Sequence[ToolCall],
        *,
        may_ask: bool = False,
    ) -> tuple[tuple[ToolResult, ...], tuple[Event, ...]]:
        """Execute the calls of one answer, in order.

        Args:
            calls: the calls.
            may_ask: whether the narrator may still return a question.

        Returns:
            A result for each call, and the events to send.
        """
        self._count(tool_rounds=1, tool_calls=len(calls))
        self.cues = []
        self._may_ask = may_ask
        results: list[tuple[ToolCall, dict[str, Any], bool]] = []
        events: list[Event] = []
        for place, call in enumerate(calls):
            try:
                answer, happened = self._execute_call(call, place)
                results.append((call, answer, not answer.get("accepted", True)))
                events += happened
            except _ToolCallRejectedError as refusal:
                self._count(refused_calls=1)
                results.append((call, {"error": str(refusal)}, True))
        if self._pending_result is not None:
            self._add_outcome(results, self._pending_result)
        told = tuple(
            ToolResult(call.call_id, _encode_result(answer), failed) for call, answer, failed in results
        )
        return told, tuple(events)

    def _add_outcome(self, results: list[tuple[ToolCall, dict[str, Any], bool]], played: TurnResult) -> None:
        """Add the result of the turn to the result of the round's last action."""
        self._known_result, self._pending_result = played, None
        self._scene.speculation.pin_outcome(played.world)
        last = next(answer for _, answer, _ in reversed(results) if answer.get("accepted"))
        event = played.world.event_id
        last["world"] = {
            "event": {"id": event, "name": self._scene.names.events[event]} if event else None,
            **self._describe_repetitions(played),
            **self._visible_effects(played.world.changes, played.world.log),
            **self._new_story(played.tree),
            "status": encode_value(replace(played.world.status, epilogue=None)),
            **describe_epilogue(self._scene.names, played.world.status),
        }

    def _describe_repetitions(self, played: TurnResult) -> dict[str, Any]:
        happened = list_happened([played.world], self._scene.names)
        repeated = count_repetitions(happened, self._scene.happened_before)
        told = truncate_json(repeated, self._scene.room.story // 3) if repeated else None
        return {"repeated": told} if told else {}

    def _new_story(self, tree: Any) -> dict[str, Any]:
        """Return the place after the turn if it, or who is there, has changed, and the changed promises."""
        scene, board = self._scene, self._scene.speculation.transaction
        opening, after = (scene.view.project_state(each) for each in (board.opening_state.tree(), tree))
        place = describe_place(scene.spec, scene.view.viewer, after, opening)
        is_new = place is not None and place.keys() & {"from", "arrived", "left"}
        known = describe_promises(scene.spec, opening)
        promises = [promise for promise in describe_promises(scene.spec, after) if promise not in known]
        told = {"place": place if is_new else None, "promises": promises}
        return truncate_json({key: value for key, value in told.items() if value}, scene.room.story) or {}

    def _execute_call(self, call: ToolCall, place: int) -> tuple[dict[str, Any], tuple[Event, ...]]:
        if place >= _MAX_EXECUTED_CALLS:
            raise _ToolCallRejectedError(
                f"at most {_MAX_EXECUTED_CALLS} calls of one answer are executed; narrate the turn now",
            )
        if self.question is not None:
            raise _ToolCallRejectedError("the player has to answer first; no turn is played")
        offered = self._tools.get(call.name)
        if offered is None:
            names = ", ".join([*self._tools][:_MAX_LISTED_TOOLS])
            raise _ToolCallRejectedError(f"unknown tool '{call.name[:_NAME_CHARACTERS]}'; use one of {names}")
        given = _parse_arguments(call)
        if offered.action_id is not None:
            return self._execute_action(offered.action_id, given)
        findings = validate_against_schema(offered.tool.input_schema, given)
        if findings:
            raise _ToolCallRejectedError(
                f"the arguments do not fit: {findings[0].path} {findings[0].message}".strip(),
            )
        if offered.tool.name == ROLL:
            return self._execute_roll(given)
        if offered.tool.name == NO_ACTION:
            return self._close_turn()
        return self._answer_call(offered.tool.name, given, place), ()

    def _answer_call(self, tool: str, given: Mapping[str, Any], place: int) -> dict[str, Any]:
        """Return the result of a call that sends no event."""
        match tool:
            case known if known == ASK_PLAYER:
                return self._ask_player(given["question"])
            case known if known == ASK_RECORD:
                return self._ask_record(given["question"])
            case known if known == VOICE:
                return self._cue_voice(place, given)
        return self._execute_query(given["path"])

    def _close_turn(self) -> tuple[dict[str, Any], tuple[Event, ...]]:
        """Let time pass without an action; the result of the turn follows.

        The rejected actions become part of the turn, so that the next turns and `ask` know what was tried.
        """
        board = self._scene.speculation.transaction
        if not self._scene.input.strip() or self._is_closed or self._known_result is not None:
            raise _ToolCallRejectedError("the turn is decided already; narrate it")
        if any(act.accepted for act in board.action_results):
            raise _ToolCallRejectedError("an action of this turn was carried out; narrate it")
        self._is_closed = True
        events = tuple(
            event for call in self._rejected_actions for event in self._scene.speculation.act(call)
        )
        self._pending_result = self._scene.speculation.preview()
        return {"accepted": True}, events

    def _ask_player(self, question: str) -> dict[str, Any]:
        """Return a question to the player instead of playing the turn."""
        board = self._scene.speculation.transaction
        has_begun = bool(board.events) or self._is_closed or self._known_result is not None
        if not self._scene.words_only or has_begun or not self._may_ask:
            raise _ToolCallRejectedError("the turn has begun; narrate it, and let the prose show the doubt")
        self.question = question
        return {"asked": True}

    def _ask_record(self, question: str) -> dict[str, Any]:
        """Answer a question about the earlier turns, as the point of view knows them."""
        if self.record is None:
            raise _ToolCallRejectedError("the record is not available; narrate the turn")
        answer = answer_question(self.record, question)
        known = memories_for(self._scene.session.memories, self._scene.view.viewer)
        noted = find_mentions([(memory.turn, memory.content) for memory in known], question, _MAX_MENTIONS)
        sentences = [
            (turn.turn, sentence.strip())
            for turn in self.record.turns
            for sentence in split_sentences(turn.narrative)
        ]
        narrated = find_mentions(sentences, question, _MAX_MENTIONS)
        mentions = {"noted": noted, "narrated": narrated}
        told = {
            name: [{"turn": turn, "text": text} for turn, text in found]
            for name, found in mentions.items()
            if found
        }
        return {"answer": answer.text, "found": answer.is_found, "turns": list(answer.turns), **told}

    def _cue_voice(self, place: int, given: Mapping[str, Any]) -> dict[str, Any]:
        if self._voices >= _MAX_VOICES:
            raise _ToolCallRejectedError(f"at most {_MAX_VOICES} utterances fit into a turn; narrate it")
        self._voices += 1
        self.cues.append(VoiceCue(place, given["entity_id"], given["about"]))
        return {}

    def _execute_action(
        self,
        action_id: str,
        given: Mapping[str, Any],
    ) -> tuple[dict[str, Any], tuple[Event, ...]]:
        board = self._scene.speculation.transaction
        if not self._scene.input.strip():
            raise _ToolCallRejectedError("the player has chosen the actions of this turn; narrate it")
        if self._is_closed:
            raise _ToolCallRejectedError("no_action has closed the turn; narrate it")
        if self._known_result is not None:
            raise _ToolCallRejectedError(
                "the actions of this turn are complete, as they must come in one answer; narrate it",
            )
        if len(board.action_results) >= (1 if self._scene.rules.spec.get("solutions") else _MAX_ACTIONS):
            raise _ToolCallRejectedError(
                "the turn has no room for another action; narrate what is done so far"
            )
        call = PlayerAction(action_id, given)
        try:
            # Tried on a fork: an action that is rejected, or after which the turn cannot end, must not be
            # applied.
            trial = board.fork()
            resolved: ActionResolved = trial.act(call)[0]  # type: ignore[assignment]
            played = trial.finish() if resolved.accepted else None
        except PeripetyError as error:
            raise _ToolCallRejectedError(
                f"the action exceeds a limit of the turn ({error.code}); do less",
            ) from error
        if played is None:
            self._count(rejected_actions=1)
            self._note_rejected(call)
            reasons = [reason.message for reason in self._scene.view.project_failures(resolved.reasons)]
            return {"accepted": False, "reasons": reasons}, ()
        if len(played.record) > _RECORD_BYTES:
            raise _ToolCallRejectedError("the turn has reached its size limit; narrate it")
        if find_leaks(self._scene, [given]):
            raise _ToolCallRejectedError(
                "these parameters are public but contain restricted information; use others",
            )
        self._pending_result = played
        events = self._scene.speculation.act(call)
        return {"accepted": True, **self._visible_effects(resolved.changes, resolved.log)}, events

    def _note_rejected(self, call: PlayerAction) -> None:
        """Store a rejected action for the record of the turn, unless it is a repetition or shows a secret."""
        is_known = call in self._rejected_actions
        has_room = len(self._rejected_actions) < _MAX_KEPT_REJECTIONS
        if has_room and not is_known and not find_leaks(self._scene, [call.params]):
            self._rejected_actions.append(call)

    def _execute_roll(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Event, ...]]:
        die = DieRollRequest(given["kind"], int(given["difficulty"]), given.get("target"))
        try:
            rolled = self._scene.speculation.roll(die)
        except PeripetyError as error:
            raise _ToolCallRejectedError(error.message) from error
        return {"roll": rolled.roll.roll, "success": rolled.roll.success}, (rolled,)

    def _execute_query(self, text: str) -> dict[str, Any]:
        tree = (
            self._scene.speculation.transaction.state.tree()
            if self._known_result is None
            else self._known_result.tree
        )
        value: Any = self._scene.view.project_state(tree)
        try:
            root, *steps = engine.parse_path(text)
            for key in steps if root == "state" else (None,):
                value = value[key]
        except (PeripetyError, LookupError, TypeError):
            raise _ToolCallRejectedError(
                "path not found or not visible; query `state` for everything visible",
            ) from None
        return {"value": truncate_json(value, _RESULT_CHARACTERS)}

    def _visible_effects(self, changes: tuple[Change, ...], log: tuple[LogLine, ...]) -> dict[str, Any]:
        seen = encode_value(self._scene.view.project_changes(changes))
        return {"changes": seen, "log": [line.message for line in log]}

    def _count(self, **more: int) -> None:
        counts = {name: getattr(self.stats, name) + count for name, count in more.items()}
        self.stats = replace(self.stats, **counts)


_NO_ACTORS = ""
"""In the place of a viewer: people are not voiced by calls of their own."""


@lru_cache(maxsize=_CACHED_VERSIONS)
def _tools_by_name(
    rules: ScenarioRules,
    voiced_for: str | None,
    *,
    has_record: bool,
) -> Mapping[str, ScenarioTool]:
    own = [_NO_ACTION_TOOL, _ASK_PLAYER_TOOL]
    if has_record:
        own.append(_ASK_RECORD_TOOL)
    if voiced_for != _NO_ACTORS:
        own += _voice_tools([each["id"] for each in list_characters(rules.spec) if each["id"] != voiced_for])
    return {one.tool.name: one for one in (*scenario_tools(rules.spec), *map(ScenarioTool, own))}


def _voice_tools(cast: Sequence[str]) -> list[Tool]:
    """Return the tool that lets a person of the cast speak; none without a cast."""
    about = "The words or the event that the person answers to, as the person perceives them."
    properties = {
        "entity_id": {"type": "string", "enum": list(cast)},
        "about": {"type": "string", "maxLength": _CUE_CHARACTERS, "description": about},
    }
    description = (
        "Let a person speak. The result has the words of this person; quote them word for word. Without an "
        "utterance, the person stays silent. Changes nothing."
    )
    return [_own_tool(VOICE, description, properties)] if cast else []


def _own_tool(name: str, description: str, properties: Mapping[str, Any]) -> Tool:
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return Tool(name, description, schema | {"additionalProperties": False})


_NO_ACTION_TOOL = _own_tool(
    NO_ACTION,
    "The player's words are clear, but none of the actions is tried, or all were rejected. Time passes, "
    "and the result is what the world does.",
    {},
)
_ASK_PLAYER_TOOL = _own_tool(
    ASK_PLAYER,
    "The player's words cannot be understood, or are about the game. Send one short question, before any "
    "other call and without a narration. No turn is spent.",
    {"question": {"type": "string", "maxLength": _QUESTION_CHARACTERS}},
)


_ASK_RECORD_TOOL = _own_tool(
    ASK_RECORD,
    "Answer an English question about the turns before this one from the record, such as `what did p say in "
    "turn 3` or `when did x change`. The result also has what you noted and narrated about its words. "
    "Changes nothing.",
    {"question": {"type": "string", "maxLength": _QUESTION_CHARACTERS}},
)


def _parse_arguments(call: ToolCall) -> dict[str, Any]:
    """Parse the arguments of a call, which must be a JSON object."""
    if len(call.arguments) > _ARGUMENTS_CHARACTERS:
        raise _ToolCallRejectedError("the arguments are too long; give only the parameters of the tool")
    try:
        given = engine.parse(call.arguments.strip() or "{}")
    except PeripetyError as error:
        raise _ToolCallRejectedError(
            f"the arguments are not JSON ({error.message[:200]}); give one object",
        ) from error
    if not isinstance(given, dict):
        raise _ToolCallRejectedError("the arguments are not a JSON object; give one object")
    return given


def _encode_result(answer: dict[str, Any]) -> str:
    shown = truncate_json(answer, _RESULT_CHARACTERS)
    if shown is None:
        shown = {key: answer[key] for key in ("accepted", "error") if key in answer}
    return to_json_text(shown)
