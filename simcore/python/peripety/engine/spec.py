"""Documents of the engine as types: ScenarioSpec 1.0 and 1.1, and the narrator's Outcome.

The models are the source of the JSON Schemas in `peripety.engine.schemas`. Documents are validated against
the schemas, not by instantiating the models, so that every finding has a path.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

_MAX_SEED = 2**53 - 1
_Id = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$")]
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Text = Annotated[str, Field(max_length=10_000)]
_PathText = Annotated[str, Field(min_length=1, max_length=512)]
_Duration = Annotated[str, Field(min_length=2, max_length=32)]
_Turns = Annotated[int, Field(ge=1, le=1_000_000)]
_Logic = Annotated[dict[str, JsonValue], Field(description="A JSONLogic expression; {} is always true.")]
_Weight = Annotated[float, Field(ge=0.05, le=0.30)]
_Derives = Annotated[
    dict[str, JsonValue],
    Field(max_length=64, description="Named JSONLogic values that effects may use."),
]


class StrictModel(BaseModel):
    """Base of all document models: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", title=None)


class SetOp(StrictModel):
    """Put a value at a path; may create the last key, never a missing parent."""

    op: Literal["set"]
    path: _PathText
    value: JsonValue


class IncOp(StrictModel):
    """Add to a number."""

    op: Literal["inc"]
    path: _PathText
    value: float | str = Field(description="A number, or the name of a derived value.")


class DecOp(StrictModel):
    """Subtract from a number."""

    op: Literal["dec"]
    path: _PathText
    value: float | str = Field(description="A number, or the name of a derived value.")


class MulOp(StrictModel):
    """Multiply a number."""

    op: Literal["mul"]
    path: _PathText
    value: float | str = Field(description="A number, or the name of a derived value.")


class PatchOp(StrictModel):
    """Merge keys into an existing object, one level deep."""

    op: Literal["patch"]
    path: _PathText
    value: dict[str, JsonValue] | str = Field(description="An object, or the name of a derived value.")


class PushOp(StrictModel):
    """Append to an existing array."""

    op: Literal["push"]
    path: _PathText
    value: JsonValue


class PopOp(StrictModel):
    """Remove the last element of an array."""

    op: Literal["pop"]
    path: _PathText


class AddLogOp(StrictModel):
    """Append a line to the log of the session."""

    op: Literal["addlog"]
    message: Annotated[str, Field(min_length=1, max_length=4000)]


class ScheduleOp(StrictModel):
    """Run effects later: at a turn (or a time from the start), or after some turns (or a duration)."""

    op: Literal["schedule"]
    id: _Id
    at: _Turns | _Duration | None = Field(default=None, description="Turn number, or time from the start.")
    after: _Turns | _Duration | None = Field(default=None, description="Turns from now, or a duration.")
    effects: Annotated[list[EffectOp], Field(min_length=1, max_length=4096)]


EffectOp = Annotated[
    SetOp | IncOp | DecOp | MulOp | PatchOp | PushOp | PopOp | AddLogOp | ScheduleOp,
    Field(discriminator="op"),
]
_Effects = Annotated[list[EffectOp], Field(max_length=4096)]


class Entity(StrictModel):
    """A participant of the scenario: a person, a group or a thing."""

    id: _Id
    name: _Name | None = None
    kind: _Name | None = None
    description: _Text | None = None
    playable: bool | None = None


class Param(StrictModel):
    """A parameter of an action; every parameter has a finite domain or bounds."""

    type: Literal["integer", "number", "string", "boolean"]
    minimum: float | None = None
    maximum: float | None = None
    enum: Annotated[list[float | str | bool], Field(min_length=1, max_length=256)] | None = None
    maxLength: Annotated[int, Field(ge=1, le=1000)] | None = None  # noqa: N815 - JSON Schema's own keyword


class Action(StrictModel):
    """An action that a player can perform."""

    id: _Id
    name: _Name | None = None
    description: _Text | None = None
    params: Annotated[dict[str, Param], Field(max_length=16)]
    preconditions: _Logic
    derives: _Derives | None = None
    effects: _Effects


class RandomEvent(StrictModel):
    """An event that may happen at the end of a turn."""

    id: _Id
    name: _Name | None = None
    weight: _Weight
    when: _Logic
    derives: _Derives | None = None
    effects: _Effects
    duration: _Duration | None = Field(
        default=None,
        description="Duration of its effects: P7D, PT12H, 7d, 12h.",
    )


class EndCondition(StrictModel):
    """A condition that ends a run."""

    id: _Id
    when: _Logic
    message: _Text | None = None


class NegativityBudget(StrictModel):
    """The required difficulty of the scenario."""

    min_fail_rate: Annotated[float, Field(gt=0, le=1)]
    max_fail_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    decay_per_turn: Annotated[dict[str, float], Field(max_length=512)] | None = None
    max_positive_drift: Annotated[float, Field(ge=0)] | None = None


class Clock(StrictModel):
    """The duration of a turn."""

    turn: _Duration


class VisibilityRule(StrictModel):
    """The audience of a path."""

    path: _PathText
    to: Literal["public", "hidden"] | Annotated[list[_Id], Field(min_length=1, max_length=64)]


class NarratorScope(StrictModel):
    """A permission of the narrator to write a path."""

    path: _PathText
    ops: Annotated[list[Literal["set", "inc", "dec", "mul", "patch", "push", "pop"]], Field(min_length=1)]
    max_magnitude: Annotated[float, Field(ge=0)] | None = None


class ScenarioSpec(StrictModel):
    """A scenario: its state, its actions, its random events, and the conditions that end a run."""

    spec_version: Literal["1.0"]
    id: _Id
    name: _Name
    seed: Annotated[int, Field(ge=0, le=_MAX_SEED)]
    state: dict[str, JsonValue]
    actions: Annotated[list[Action], Field(min_length=1, max_length=512)]
    random_events: Annotated[list[RandomEvent], Field(max_length=512)]
    loss_conditions: Annotated[list[EndCondition], Field(min_length=2, max_length=512)]
    negativity_budget: NegativityBudget
    win_conditions: Annotated[list[EndCondition], Field(max_length=512)] | None = None
    entities: Annotated[list[Entity], Field(max_length=512)] | None = None
    clock: Clock | None = None
    horizon: Annotated[int, Field(ge=1, le=1000)] | None = None
    visibility: Annotated[list[VisibilityRule], Field(max_length=512)] | None = None
    narrator_scope: Annotated[list[NarratorScope], Field(max_length=512)] | None = None


_LongText = Annotated[str, Field(min_length=1, max_length=10_000)]
_ShortText = Annotated[str, Field(min_length=1, max_length=2000)]
_Word = Annotated[str, Field(min_length=1, max_length=64)]
_PremiseText = Annotated[str, Field(min_length=1, max_length=2048)]
_Key = Annotated[str, Field(min_length=1, max_length=64)]


class Character(Entity):
    """An entity with texts for its portrayal."""

    voice: _ShortText | None = Field(default=None, description="Its way of speaking.")
    manner: _ShortText | None = Field(default=None, description="Its behaviour, as everyone sees it.")
    wants: _ShortText | None = Field(default=None, description="Its goals; private.")
    knows: _ShortText | None = Field(default=None, description="Its knowledge; private.")
    secret: _ShortText | None = Field(default=None, description="What it hides; private.")
    place: _Key | None = Field(default=None, description="The place where it is at the start.")


class ParamMessage(StrictModel):
    """A message for each value of a parameter of the action."""

    param: Annotated[str, Field(min_length=1, max_length=64)]
    texts: Annotated[dict[str, Annotated[str, Field(min_length=1, max_length=4000)]], Field(max_length=64)]


class ParamAddLogOp(AddLogOp):
    """Append a line to the log of the session; it may depend on a parameter."""

    message: Annotated[str, Field(min_length=1, max_length=4000)] | ParamMessage  # type: ignore[assignment]


class ParamScheduleOp(ScheduleOp):
    """Run effects of an action later."""

    effects: Annotated[list[ParamEffectOp], Field(min_length=1, max_length=4096)]  # type: ignore[assignment]
    once: bool | None = Field(default=None, description="True if it is scheduled at most once in a run.")


class ParamName(StrictModel):
    """The value of a parameter of the action."""

    param: _Key


class RevealOp(StrictModel):
    """Make a clue known to everyone."""

    op: Literal["reveal"]
    clue: _Key | ParamName
    when: _Logic | None = Field(default=None, description="It happens only if this holds; hidden.")


class SayOp(StrictModel):
    """Let an entity make its statement."""

    op: Literal["say"]
    statement: _Key | ParamName
    when: _Logic | None = Field(default=None, description="It happens only if this holds; hidden.")


class PromiseOp(StrictModel):
    """Make a promise."""

    op: Literal["promise"]
    promise: _Key


class KeepOp(StrictModel):
    """Fulfil a promise that is open."""

    op: Literal["keep"]
    promise: _Key


class BreakOp(StrictModel):
    """Break a promise that is open."""

    op: Literal["break"]
    promise: _Key


class MoveOp(StrictModel):
    """Move an entity to a place to which an exit of its place leads."""

    op: Literal["move"]
    entity: _Key | ParamName
    to: _Key | ParamName


_StoryOp = RevealOp | SayOp | PromiseOp | KeepOp | BreakOp | MoveOp
ParamEffectOp = Annotated[
    SetOp | IncOp | DecOp | MulOp | PatchOp | PushOp | PopOp | ParamAddLogOp | ParamScheduleOp | _StoryOp,
    Field(discriminator="op"),
]


class ParamAction(Action):
    """An action whose paths and messages may depend on its parameters."""

    effects: Annotated[list[ParamEffectOp], Field(max_length=4096)]  # type: ignore[assignment]
    once: bool | None = Field(default=None, description="True if it happens at most once in a run.")


class EventScheduleOp(ScheduleOp):
    """Run effects of an event later."""

    effects: Annotated[list[EventEffectOp], Field(min_length=1, max_length=4096)]  # type: ignore[assignment]
    once: bool | None = Field(default=None, description="True if it is scheduled at most once in a run.")


EventEffectOp = Annotated[
    SetOp | IncOp | DecOp | MulOp | PatchOp | PushOp | PopOp | AddLogOp | EventScheduleOp | _StoryOp,
    Field(discriminator="op"),
]


class StoryEvent(RandomEvent):
    """A random event of a scenario of version 1.1."""

    effects: Annotated[list[EventEffectOp], Field(max_length=4096)]  # type: ignore[assignment]
    once: bool | None = Field(default=None, description="True if it happens at most once in a run.")


class DealtText(StrictModel):
    """A text for each value of a deal."""

    deal: _Id
    texts: Annotated[dict[str, _ShortText], Field(min_length=1, max_length=64)]


class DealtEpilogue(StrictModel):
    """A text of an ending for each value of a deal."""

    deal: _Id
    texts: Annotated[dict[str, _LongText], Field(min_length=1, max_length=64)]


class Clue(StrictModel):
    """A text that does not exist for any viewer until it is revealed."""

    text: _ShortText | DealtText
    about: _Name | None = Field(default=None, description="The conclusion that it supports.")


class Statement(StrictModel):
    """The claim of an entity."""

    by: _Id
    text: _ShortText | DealtText
    true: bool | _Logic = Field(description="Whether it is true, or the condition for it; hidden.")
    broken_by: _Key | None = Field(default=None, description="The clue that refutes it; hidden.")


class Hearer(StrictModel):
    """An entity that hears of a promise some time after it is fulfilled or broken."""

    entity: _Id
    after: _Turns | _Duration


class Commitment(StrictModel):
    """A promise to an entity; it is broken when it is due and still open."""

    to: _Id
    by: _Id | None = Field(default=None, description="The entity that makes it; the player by default.")
    terms: _ShortText
    due: _Turns | _Duration = Field(description="Turns from its making, or a duration.")
    hears: Annotated[list[Hearer], Field(max_length=64)] | None = None


class Location(StrictModel):
    """A place with the ids of the places to which its exits lead."""

    name: _Name | None = None
    description: _ShortText | None = None
    exits: Annotated[list[_Key], Field(max_length=64)] | None = None


class Bounds(StrictModel):
    """The least and the greatest number at a path; at least one of them."""

    min: float | None = None
    max: float | None = None


class Deal(StrictModel):
    """A hidden truth, drawn once for each run."""

    id: _Id
    path: _PathText
    values: Annotated[list[JsonValue], Field(min_length=2, max_length=64)]


class Premise(StrictModel):
    """The situation at the start, and the style of its narration."""

    text: _PremiseText
    tone: _ShortText | None = None
    person: Literal["first", "second", "third"] | None = None
    tense: Literal["past", "present"] | None = None


class Band(StrictModel):
    """A word for the numbers up to a limit; the last band may have no limit."""

    upto: float | None = None
    word: _Word


class Label(StrictModel):
    """The name of a value for readers."""

    name: _Name
    unit: _Word | None = None
    bands: Annotated[list[Band], Field(min_length=1, max_length=32)] | None = None


class DealName(StrictModel):
    """The value of a deal."""

    deal: _Id


class SolutionMove(StrictModel):
    """An action with its parameters; a value may be that of a deal."""

    action: _Id
    params: Annotated[dict[str, float | str | bool | DealName], Field(max_length=16)] | None = None


class SolutionStep(SolutionMove):
    """A move of a solution, and when it is made."""

    when: _Logic | None = Field(
        default=None,
        description="The step is left out while this does not hold. It reads only what the player sees.",
    )
    otherwise: Literal["wait", "skip"] | SolutionMove | None = Field(
        default=None,
        description="What to do while the move is not legal: wait (the default), skip it, or another move. It"
        " is also done while `when` does not hold; the default is then to skip the step.",
    )


class Solution(StrictModel):
    """Steps that win; players never see them."""

    id: _Id
    when: _Logic | None = Field(default=None, description="The deals that it solves; all by default.")
    steps: Annotated[list[SolutionStep], Field(min_length=1, max_length=512)]


class ScenarioSpec11(ScenarioSpec):
    """A scenario of version 1.1."""

    spec_version: Literal["1.1"]  # type: ignore[assignment]  # the version is what differs
    actions: Annotated[list[ParamAction], Field(min_length=1, max_length=512)]  # type: ignore[assignment]
    random_events: Annotated[list[StoryEvent], Field(max_length=512)]  # type: ignore[assignment]
    entities: Annotated[list[Character], Field(max_length=512)] | None = None  # type: ignore[assignment]
    bounds: Annotated[dict[str, Bounds], Field(max_length=512)] | None = None
    deal: Annotated[list[Deal], Field(max_length=64)] | None = None
    premise: _PremiseText | Premise | None = None
    opening: _LongText | None = None
    epilogues: Annotated[dict[str, _LongText | DealtEpilogue], Field(max_length=1024)] | None = None
    labels: Annotated[dict[str, Label], Field(max_length=512)] | None = None
    solutions: Annotated[list[Solution], Field(min_length=1, max_length=64)] | None = None
    clues: Annotated[dict[str, Clue], Field(max_length=256)] | None = None
    statements: Annotated[dict[str, Statement], Field(max_length=256)] | None = None
    promises: Annotated[dict[str, Commitment], Field(max_length=256)] | None = None
    places: Annotated[dict[str, Location], Field(min_length=1, max_length=256)] | None = None


class Dialogue(StrictModel):
    """A line that an entity speaks aloud."""

    entity_id: _Id
    utterance: Annotated[str, Field(min_length=1, max_length=2000)]


class StateChange(StrictModel):
    """A change that the narrator proposes."""

    op: Literal["set", "inc", "dec", "mul", "patch", "push", "pop"]
    path: _PathText
    value: JsonValue = None


class RollRequest(StrictModel):
    """A roll that the narrator requests."""

    kind: _Id
    target: _Id | None = None
    difficulty: Annotated[int, Field(ge=1, le=30)]


class MemoryUpdate(StrictModel):
    """A memory of an entity."""

    scope: _Id
    target_id: _Id
    content: Annotated[str, Field(min_length=1, max_length=2000)]
    visibility: Literal["public", "private", "hidden"]


class Outcome(StrictModel):
    """The answer of a narrator for a turn."""

    narrative: Annotated[str, Field(min_length=1, max_length=8000)]
    visible_dialogue: Annotated[list[Dialogue], Field(max_length=16)] | None = None
    state_changes: Annotated[list[StateChange], Field(max_length=64)] | None = None
    roll_requests: Annotated[list[RollRequest], Field(max_length=16)] | None = None
    hidden_memory_updates: Annotated[list[MemoryUpdate], Field(max_length=16)] | None = None


ScheduleOp.model_rebuild()
ParamScheduleOp.model_rebuild()
EventScheduleOp.model_rebuild()
