"""Messages from values with fields of the same names."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.core.runs.call_runs import CallRunState
from peripety.errors import field_error
from peripety.rpc.status import item_error_to_proto

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from google.protobuf.descriptor import Descriptor, FieldDescriptor

    from peripety.core.runs.call_runs import CallRun


M = TypeVar("M", bound=Message)
E = TypeVar("E", bound=Enum)


def copy_fields(message_type: type[M], value: object, /, **given: Any) -> M:
    """Return a message with the fields of a value.

    None leaves a field unset. An enum member or a word becomes the enum value of this name. A time in
    microseconds, a duration in seconds and an amount in 10^-12 dollars become their messages, and so do an
    error, a cause and the value of a parameter. Any other nested value becomes a message in the same way.

    Args:
        message_type: the type of the message.
        value: an object with an attribute for each field that is not given.
        **given: values of fields; they are converted like attributes.

    Raises:
        AttributeError: the value has no attribute for a field.
        ValueError: the message has no field of a given name.
    """
    return message_type(**_members(cast("Descriptor", message_type.DESCRIPTOR), value, given))


def members_by_number(enum: Any, members: Iterable[E], unspecified: E | None = None) -> dict[int, E]:
    """Return the members of an enumeration by the value of the same name in a proto enum.

    Args:
        enum: the proto enum.
        members: the members.
        unspecified: the member for the value `UNSPECIFIED`; None for none.
    """
    prefix = enum.DESCRIPTOR.values[0].name.removesuffix("UNSPECIFIED")
    by_number = {enum.Value(prefix + member.name): member for member in members}
    return by_number if unspecified is None else {0: unspecified} | by_number


def time_to_proto(time: int | datetime) -> Timestamp:
    """Convert microseconds since 1970, or a time in UTC, to a timestamp."""
    timestamp = Timestamp()
    if isinstance(time, datetime):
        timestamp.FromDatetime(time)
    else:
        timestamp.FromMicroseconds(time)
    return timestamp


def duration_to_proto(seconds: float) -> Duration:
    """Convert seconds to a duration."""
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration


def money_to_proto(pico: int) -> common.Money:
    """Convert an amount in 10^-12 dollars."""
    return common.Money(currency_code="USD", pico_units=pico)


def call_run_to_proto(run: CallRun) -> common.CallRun:
    """Convert a run of a call."""
    return copy_fields(common.CallRun, run, create_time=run.created, update_time=run.updated)


def call_run_state_from_proto(state: common.CallRunState.ValueType) -> CallRunState | None:
    """Convert the state filter of a list; None for any state.

    Raises:
        InvalidArgumentError: the state is not in the contract.
    """
    states = members_by_number(common.CallRunState, CallRunState)
    if state and state not in states:
        raise field_error(".state", "must be a known state")
    return states.get(state)


def param_to_proto(value: str | float) -> engine.ParamValue:
    """Convert the value of a parameter of an action."""
    if isinstance(value, bool):
        return engine.ParamValue(flag=value)
    if isinstance(value, str):
        return engine.ParamValue(text=value)
    return engine.ParamValue(number=value)


def cause_to_proto(cause: str) -> engine.Cause:
    """Convert a cause in the form `kind:id`."""
    kind, _, name = cause.partition(":")
    return engine.Cause(kind=engine.CauseKind.Value(f"CAUSE_KIND_{kind.upper()}"), id=name)


def params_from_proto(field: str, params: Mapping[str, engine.ParamValue]) -> dict[str, Any]:
    """Convert the parameters of an action, sorted by name.

    Args:
        field: path of the action in its request, for errors.
        params: the parameters by name.

    Raises:
        InvalidArgumentError: a parameter is empty.
    """
    read = {}
    for name, value in sorted(params.items()):
        kind = value.WhichOneof("kind")
        if kind is None:
            raise field_error(f"{field}.params[{name[:64]}]", "is empty; set number, text or flag")
        read[name] = getattr(value, kind)
    return read


_CONVERTERS: dict[str, Callable[[Any], Message]] = {
    Timestamp.DESCRIPTOR.full_name: time_to_proto,
    Duration.DESCRIPTOR.full_name: duration_to_proto,
    common.Money.DESCRIPTOR.full_name: money_to_proto,
    common.ItemError.DESCRIPTOR.full_name: item_error_to_proto,
    engine.Cause.DESCRIPTOR.full_name: cause_to_proto,
    engine.ParamValue.DESCRIPTOR.full_name: param_to_proto,
}


def _members(message_type: Descriptor, value: object, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the constructor of a message."""
    members = dict(given)
    for name, convert in _converters(message_type).items():
        member = given[name] if name in given else getattr(value, name)
        members[name] = convert(member) if convert and member is not None else member
    return members


@cache
def _converters(message_type: Descriptor) -> dict[str, Callable[[Any], Any] | None]:
    """Return the converter of each field; None for a field that needs none."""
    return {field.name: _field_converter(field) for field in message_type.fields}


def _field_converter(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        to_value = _value_converter(field.message_type.fields_by_name["value"])
        if to_value is None:
            return None
        return lambda members: {name: to_value(member) for name, member in members.items()}
    convert = _value_converter(field)
    if convert is None or not field.is_repeated:
        return convert
    return lambda members: [convert(member) for member in members]


def _value_converter(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    """Return the converter of a field, or of an item of a repeated field."""
    if field.enum_type is not None:
        return partial(_enum_name, field.enum_type.values[0].name.removesuffix("UNSPECIFIED"))
    if field.message_type is None:
        return None
    convert = _CONVERTERS.get(field.message_type.full_name, partial(_nested_members, field.message_type))
    return lambda member: member if isinstance(member, Message) else convert(member)


def _enum_name(prefix: str, member: Enum | str | int) -> str | int:
    if isinstance(member, Enum):
        return prefix + member.name
    return prefix + member.upper() if isinstance(member, str) else member


def _nested_members(message_type: Descriptor, value: object) -> dict[str, Any]:
    return _members(message_type, value, {})
