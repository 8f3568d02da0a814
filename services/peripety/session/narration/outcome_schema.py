"""Validation of the narrator's Outcome: its JSON Schema, and checks that a schema cannot express."""

from __future__ import annotations

import re
from copy import deepcopy
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from peripety.core.concurrency import run_in_thread_if_large
from peripety.engine import Visibility, list_narrator_permissions, parse_path
from peripety.engine.schema_validation import drop_invalid_nulls, validate_against_schema
from peripety.engine.schemas import OUTCOME, schema_document
from peripety.errors import Finding, PeripetyError
from peripety.gateway.types.request import ResponseSchema
from peripety.session.events import ActionResolved
from peripety.session.memory import WORLD
from peripety.session.narration.claims.checker import ClaimChecker, ClaimFilter, is_checkable
from peripety.session.narration.claims.record import turn_facts
from peripety.session.narration.scenario_prompt import list_characters
from peripety.session.narration.secret_filter import LeakFilter, find_leaks, list_secret_texts
from peripety.session.narration.turn_context import truncate_text
from peripety.session.types import DieRollRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.engine import RuleError
    from peripety.session.narration.claims.record import WrongClaim
    from peripety.session.narration.turn_context import NarrationContext, ScenarioRules
    from peripety.session.turn_transaction import TurnResult


T = TypeVar("T")


NARRATIVE_CHARACTERS = 1_500
"""Maximum length of a narrative."""

_MAX_UTTERANCES = 4
_UTTERANCE_CHARACTERS = 300
_MAX_CHANGES = 8
_MAX_DICE = 4
_MAX_MEMORIES = 4
_MEMORY_CHARACTERS = 500
_CODE_PREFIXES = ("{", "`")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_EMPTY_ARRAY = {"type": "array", "items": {"type": "null"}, "maxItems": 0}
_REVEALS_TO_OTHERS = "value reveals restricted information to other viewers; leave it out"
_REVEALS_TO_VIEWER = "text reveals what the point of view may not know; leave that out"
_MAX_CONTRADICTIONS = 4
_QUOTATION_CHARACTERS = 160
_CACHED_VERSIONS = 64
_OPENING_FIELDS = ("state_changes", "roll_requests", "visible_dialogue")
# The messages of these errors depend on the change itself or on the scope, never on the state.
_PATH_ERROR_CODES = frozenset({"BAD_PATH", "CHANGE_INVALID", "FORBIDDEN_KEY", "KEY_TOO_LONG"})
_SAFE_ERROR_CODES = _PATH_ERROR_CODES | {"CODE_IN_VALUE", "OUT_OF_SCOPE", "TURN_DECIDED"}


def normalize_text(text: str) -> str:
    """Remove control characters, which affect displays but carry no meaning."""
    return _CONTROLS.sub("", text)


def is_code_like(text: str) -> bool:
    """Return True if a text that should be prose starts like code."""
    return text.lstrip().startswith(_CODE_PREFIXES)


def extract_rolls(outcome: Mapping[str, Any]) -> tuple[DieRollRequest, ...]:
    """Return the dice that an Outcome requests."""
    return tuple(
        DieRollRequest(die["kind"], int(die["difficulty"]), die.get("target"))
        for die in outcome.get("roll_requests") or ()
    )


class OutcomeValidator:
    """Validator of the Outcomes of one turn.

    Args:
        scene: the turn.
    """

    def __init__(self, scene: NarrationContext) -> None:
        self._scene = scene
        self._document = _build_schema(scene.rules, has_dialogue=not scene.has_actors)
        self._cached_filter: tuple[int, LeakFilter] | None = None
        self.withheld_secrets = 0
        """Number of Outcomes that would have revealed restricted information."""
        self.contradictions = 0
        """Number of Outcomes whose prose contradicts the record of the turn."""
        self.unchecked_answers = 0
        """Number of Outcomes whose prose was not compared with the record, because it is not in English."""
        self._cached_checker: tuple[TurnResult, ClaimChecker] | None = None

    def schema(self, *, advisory: bool = False) -> ResponseSchema:
        """Return the response schema; advisory if the one repair has been used."""
        return ResponseSchema(OUTCOME, self._document, self._findings, advisory)

    async def leak_filter(self) -> LeakFilter:
        """Return a leak filter for what the audience may not know in the current state of the turn."""
        known = len(self._scene.speculation.transaction.events)
        if self._cached_filter is None or self._cached_filter[0] != known:
            self._cached_filter = known, await self._run_in_thread(lambda: LeakFilter(self._scene))
        return self._cached_filter[1].fresh_copy()

    async def claim_filter(self, played: TurnResult) -> ClaimFilter:
        """Return a filter for prose that contradicts the record of a turn."""
        language = self._scene.session.narrator.language
        return ClaimFilter(await self._claim_checker(played) if is_checkable("", language) else None)

    async def _claim_checker(self, played: TurnResult) -> ClaimChecker:
        if self._cached_checker is None or self._cached_checker[0] is not played:
            self._cached_checker = (
                played,
                await self._run_in_thread(lambda: _build_checker(self._scene, played)),
            )
        return self._cached_checker[1]

    async def parse_opening(self, beginning: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the changes, dice and dialogue before the prose of an Outcome; None if they are invalid."""
        opening = {name: beginning[name] for name in _OPENING_FIELDS if beginning.get(name)}
        if not opening:
            return {}
        properties = {name: self._document["properties"][name] for name in opening}
        schema = self._document | {"properties": properties, "required": []}
        # Strict modes have no optional keys: a model sends null to omit one.
        if validate_against_schema(schema, opening):
            opening = drop_invalid_nulls(schema, opening)
        if validate_against_schema(schema, opening) or await self._check_mechanics(opening):
            return None
        spoken = _utterances(opening)
        is_unfit = any(_check_dialogue(opening)) or (await self.leak_filter()).contains_secret(*spoken)
        return None if spoken and is_unfit else opening

    async def _findings(self, outcome: Any) -> list[Finding]:
        """Return the findings of the checks that a schema cannot express.

        Any finding costs the one repair of the turn, and after the repair the turn falls back.
        """
        narrative = normalize_text(outcome["narrative"])
        spoken = _utterances(outcome)
        leaks, objections = await self.check_text(narrative, spoken), await self._check_mechanics(outcome)
        return [
            *_check_prose(narrative),
            *_check_dialogue(outcome),
            *(leaks or objections or await self._check_claims(narrative, outcome)),
            *(objections if leaks else ()),
        ]

    async def check_text(self, narrative: str, spoken: Sequence[str] = ()) -> list[Finding]:
        """Return the findings about a text that the reader would receive: what it must not reveal.

        Every text passes this check before it is accepted, with or without an Outcome around it.

        Args:
            narrative: the prose, normalized.
            spoken: the utterances beside it, normalized.
        """
        leaks = (await self.leak_filter()).contains_secret(narrative, *spoken)
        self.withheld_secrets += leaks
        return [Finding("SECRET_TOLD", "/narrative", _REVEALS_TO_VIEWER)] if leaks else []

    async def check_plain_prose(self, narrative: str) -> list[Finding]:
        """Return the findings about prose without an Outcome, for a turn in which nothing was done."""
        return [*await self.check_text(narrative), *await self._check_claims(narrative, {})]

    async def _check_claims(self, narrative: str, outcome: Mapping[str, Any]) -> list[Finding]:
        """Return the findings about prose and speakers that contradict the record of the turn."""
        if not is_checkable(narrative, self._scene.session.narrator.language):
            self.unchecked_answers += 1
            return []
        changes, dice = outcome.get("state_changes") or (), extract_rolls(outcome)
        checker = await self._claim_checker(self._scene.speculation.compute_result(changes, dice))
        found = await self._run_in_thread(
            lambda: checker.check(narrative, outcome.get("visible_dialogue") or ())
        )
        self.contradictions += bool(found)
        return [
            Finding("CONTRADICTS_RECORD", "/narrative", _describe_contradiction(one))
            for one in found[:_MAX_CONTRADICTIONS]
        ]

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        return await run_in_thread_if_large(work, len(self._scene.session.snapshot))

    async def _check_mechanics(self, outcome: Mapping[str, Any]) -> list[Finding]:
        changes, dice = outcome.get("state_changes") or (), extract_rolls(outcome)
        if not changes and not dice:
            return []
        return await self._run_in_thread(lambda: [*self._check_changes(changes), *self._check_rolls(dice)])

    def _check_changes(self, changes: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
        try:
            reasons = self._scene.speculation.check_changes(changes)
        except PeripetyError as error:
            yield Finding(
                error.code,
                "/state_changes",
                "the changes exceed the size limit of the state; leave some out",
            )
            return
        if reasons:
            yield from (self._to_finding(reason, changes) for reason in reasons)
            return
        visibility, own = Visibility(self._scene.spec), frozenset({self._scene.view.viewer})
        is_own = [visibility.find_audience(parse_path(change["path"])) == own for change in changes]
        seen = [
            None if of_its_own else change.get("value")
            for of_its_own, change in zip(is_own, changes, strict=True)
        ]
        for index in find_leaks(self._scene, seen):
            yield Finding("SECRET_TOLD", f"/state_changes/{index}/value", _REVEALS_TO_OTHERS)

    def _to_finding(self, reason: RuleError, changes: Sequence[Mapping[str, Any]]) -> Finding:
        """Convert a rejection to a finding without information that the point of view may not see."""
        view, place = self._scene.view, reason.rule.removeprefix("/state_changes/").partition("/")[0]
        path = changes[int(place)]["path"] if place.isdecimal() else None
        if path is not None and reason.code not in _PATH_ERROR_CODES and not view.can_see(path):
            return Finding("OUT_OF_SCOPE", reason.rule, "the narrator may not change this; leave it out")
        if reason.code not in _SAFE_ERROR_CODES:
            (reason,) = view.project_failures([reason])
        return Finding(reason.code, reason.rule, reason.message)

    def _check_rolls(self, dice: Sequence[DieRollRequest]) -> Iterator[Finding]:
        board = self._scene.speculation.transaction.fork()
        for index, die in enumerate(dice):
            try:
                board.roll(die)
            except PeripetyError as error:
                yield Finding(error.code, f"/roll_requests/{index}", error.message)


def _build_checker(scene: NarrationContext, played: TurnResult) -> ClaimChecker:
    earlier = (event for turn in scene.recent_turns for event in turn.events)
    done = (event.action_id for event in earlier if isinstance(event, ActionResolved) and event.accepted)
    secrets, known = list_secret_texts(scene)
    return ClaimChecker(
        turn_facts(
            scene.spec,
            scene.view,
            scene.speculation.transaction.opening_state.tree(),
            played.tree,
            played.events,
            knows_status=not scene.input.strip(),
            done_before=frozenset(done),
            secrets=secrets,
            known=known,
        ),
    )


def _describe_contradiction(contradiction: WrongClaim) -> str:
    quotation = truncate_text(contradiction.quotation, _QUOTATION_CHARACTERS)
    return f"'{quotation}' contradicts the record: {contradiction.expected}; narrate what was recorded"


def _check_prose(narrative: str) -> Iterator[Finding]:
    if not any(map(str.isalnum, narrative)):
        yield Finding("BLANK", "/narrative", "the narrative has no words; narrate the turn")
    elif is_code_like(narrative):
        yield Finding("NOT_PROSE", "/narrative", "the narrative is code; write plain prose")


def _utterances(outcome: Mapping[str, Any]) -> list[str]:
    return [normalize_text(line["utterance"]) for line in outcome.get("visible_dialogue") or ()]


def _check_dialogue(outcome: Mapping[str, Any]) -> Iterator[Finding]:
    for index, line in enumerate(outcome.get("visible_dialogue") or ()):
        if not normalize_text(line["utterance"]).strip():
            place = f"/visible_dialogue/{index}/utterance"
            yield Finding("BLANK", place, "the utterance is blank; write the words or leave it out")


@lru_cache(maxsize=_CACHED_VERSIONS)
def _build_schema(rules: ScenarioRules, *, has_dialogue: bool) -> dict[str, Any]:
    """Return the schema of an Outcome in a scenario.

    Fields that change the turn come first, so that the prose can be released while it is written. The
    dialogue comes before the prose that quotes it, so that each line can be sent behind its quote.
    """
    cast = [entity["id"] for entity in list_characters(rules.spec)]
    known: dict[str, Any] = deepcopy(dict(schema_document(OUTCOME)))
    properties, parts = known["properties"], known["$defs"]
    asked: dict[str, Any] = {
        "state_changes": properties["state_changes"] | {"maxItems": _MAX_CHANGES},
        "roll_requests": properties["roll_requests"] | {"maxItems": _MAX_DICE},
    }
    if cast and has_dialogue:
        asked["visible_dialogue"] = properties["visible_dialogue"] | {"maxItems": _MAX_UTTERANCES}
        parts["Dialogue"]["properties"]["entity_id"] = {"type": "string", "enum": cast}
        parts["Dialogue"]["properties"]["utterance"]["maxLength"] = _UTTERANCE_CHARACTERS
    else:
        asked["visible_dialogue"] = _EMPTY_ARRAY
        del parts["Dialogue"]
    asked["narrative"] = properties["narrative"] | {"maxLength": NARRATIVE_CHARACTERS}
    asked["hidden_memory_updates"] = properties["hidden_memory_updates"] | {"maxItems": _MAX_MEMORIES}
    owners = list(dict.fromkeys([*cast, WORLD]))
    parts["MemoryUpdate"]["properties"]["target_id"] = {"type": "string", "enum": owners}
    parts["MemoryUpdate"]["properties"]["content"]["maxLength"] = _MEMORY_CHARACTERS
    if not _allows_containers(rules.spec):
        # Providers enforce a schema only if it defines the type of every value.
        parts["JsonValue"] = {"type": ["number", "string", "boolean", "null"]}
    return known | {"properties": asked, "$defs": parts}


def _allows_containers(spec: Mapping[str, Any]) -> bool:
    """Return True if the narrator may write objects or arrays."""
    return any(
        allowed.operation == "patch" or any(value[0] in "{[" for value in allowed.values)
        if allowed.values is not None
        else allowed.operation in {"set", "patch", "push"}
        for allowed in list_narrator_permissions(spec)
    )
