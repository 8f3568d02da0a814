"""Policy documents as types: PolicySpec 1.0, the source of its JSON Schema."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from peripety.engine.spec import StrictModel

_Id = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$")]
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Text = Annotated[str, Field(max_length=10_000)]
_Role = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-z][a-z0-9_]*$")]
_Pointer = Annotated[str, Field(max_length=512, pattern=r"^(/([^/~]|~[01])*)+$")]
_Entry = Annotated[str, Field(min_length=1, max_length=4096)]
_Kind = Literal["path", "domain", "email", "identifier"]
_Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_Clock = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
_Names = Annotated[list[_Name], Field(min_length=1, max_length=512)]
_Roles = Annotated[list[_Role], Field(min_length=1, max_length=64)]


class ArgumentRole(StrictModel):
    """The meaning of an argument of a tool."""

    path: _Pointer
    role: _Role


class ToolAnnotation(StrictModel):
    """A tool that the policy covers."""

    server_name: _Name
    tool_name: _Name
    description: _Text | None = None
    input_schema: Annotated[
        dict[str, JsonValue] | None,
        Field(description="JSON Schema (2020-12) of its arguments."),
    ] = None
    argument_roles: Annotated[list[ArgumentRole], Field(max_length=256)] | None = None
    read_only: bool | None = None
    destructive: bool | None = None


class ValueList(StrictModel):
    """Named values for `among`."""

    kind: _Kind
    values: Annotated[list[_Entry], Field(max_length=10_000)]


class Matcher(StrictModel):
    """A requirement on the arguments with certain roles."""

    argument_roles: _Roles
    kind: _Kind
    among: Annotated[list[_Entry], Field(min_length=1, max_length=1000)]
    quantifier: Literal["all", "any", "none", "not_all"] | None = None


class Condition(StrictModel):
    """The condition of a rule: every given member must hold, and at least one must be given."""

    model_config = StrictModel.model_config | {"json_schema_extra": {"minProperties": 1}}

    servers: _Names | None = None
    tools: _Names | None = None
    roles: _Names | None = None
    argument_roles: _Roles | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    arguments: Annotated[list[Matcher], Field(min_length=1, max_length=64)] | None = None
    logic: (
        Annotated[
            dict[str, JsonValue],
            Field(description="A JSONLogic expression over {server, tool, arguments, roles}."),
        ]
        | None
    ) = None


class RateContext(StrictModel):
    """Fewer than `calls` calls were forwarded in the last `seconds`."""

    kind: Literal["rate"]
    calls: Annotated[int, Field(ge=1, le=100_000)]
    seconds: Annotated[int, Field(ge=1, le=604_800)]
    tools: Annotated[_Names | None, Field(description="The tools whose calls count; all by default.")] = None
    argument_roles: Annotated[
        _Roles | None, Field(description="Only calls that share a value of these arguments count.")
    ] = None


class TimeContext(StrictModel):
    """The local time is on one of the days, at or after `start` and before `end`."""

    kind: Literal["time"]
    days: Annotated[list[_Day], Field(min_length=1, max_length=7)] | None = None
    start: _Clock | None = None
    end: _Clock | None = None
    zone: Annotated[str, Field(max_length=64, description="IANA time zone; UTC by default.")] | None = None


class StarterContext(StrictModel):
    """One of these users of the operating system started the enforcement point."""

    kind: Literal["starter"]
    users: _Names


class ProvenanceContext(StrictModel):
    """Each value of the arguments with one of these roles comes from one of the sources."""

    kind: Literal["provenance"]
    argument_roles: _Roles
    user: Annotated[bool | None, Field(description="The words of the user contain it.")] = None
    tools: Annotated[_Names | None, Field(description="A result of one of these tools contains it.")] = None


class NamedResult(StrictModel):
    """The newest result of one of the tools that fits a call."""

    tools: _Names
    argument_roles: Annotated[
        _Roles | None, Field(description="Its call had the same values of these arguments.")
    ] = None
    contains: Annotated[_Roles | None, Field(description="It contains the values of these arguments.")] = None
    path: Annotated[
        _Pointer | None,
        Field(description="The part of it to read. A segment `{ROLE}` is the value of that argument."),
    ] = None


class ResultsContext(StrictModel):
    """Each of these results was read before, and an expression over them holds."""

    kind: Literal["results"]
    results: Annotated[dict[_Role, NamedResult], Field(min_length=1, max_length=16)]
    each: Annotated[
        _Roles | None, Field(description="It must hold for the values of these arguments one by one.")
    ] = None
    logic: Annotated[
        dict[str, JsonValue] | None,
        Field(description="A JSONLogic expression over {arguments, values, results}."),
    ] = None


class SaidContext(StrictModel):
    """The newest words of the user contain one of `words`."""

    kind: Literal["said"]
    words: _Names
    tools: Annotated[
        _Names | None, Field(description="No call of these tools was forwarded since these words.")
    ] = None


_Context = Annotated[
    RateContext | TimeContext | StarterContext | ProvenanceContext | ResultsContext | SaidContext,
    Field(discriminator="kind"),
]


class Rule(StrictModel):
    """A decision about the requests that match a condition."""

    id: _Id
    description: _Text | None = None
    principle: _Text | None = None
    when: Condition
    then: Literal["allow", "deny", "escalate"]
    reason: Annotated[str, Field(min_length=1, max_length=2000)]


class PolicySpec(StrictModel):
    """A policy: the tools that it covers, and the rules that decide about their calls."""

    policy_version: Literal["1.0"]
    id: _Id
    name: _Name
    tools: Annotated[list[ToolAnnotation], Field(min_length=1, max_length=10_000)]
    lists: Annotated[dict[str, ValueList], Field(max_length=512)] | None = None
    context: Annotated[dict[_Role, _Context], Field(max_length=64)] | None = None
    invariants: Annotated[list[Rule], Field(max_length=512)] | None = None
    rules: Annotated[list[Rule], Field(max_length=2048)]
