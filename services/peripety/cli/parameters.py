"""Parameters of actions at the terminal: their values as they are typed and shown."""

from __future__ import annotations

from peripety.api.common.v1 import engine_pb2
from peripety.cli.output import one_line


def parse_value(param: engine_pb2.Param, typed: str) -> engine_pb2.ParamValue:
    """Parse a value as it was typed. The engine checks whether it is legal.

    Raises:
        ValueError: the text is not a value of this type.
    """
    if param.type == engine_pb2.PARAM_TYPE_STRING:
        return engine_pb2.ParamValue(text=typed)
    if param.type == engine_pb2.PARAM_TYPE_BOOLEAN:
        return engine_pb2.ParamValue(flag=bool(["no", "yes"].index(typed.lower())))
    is_whole = param.type == engine_pb2.PARAM_TYPE_INTEGER
    return engine_pb2.ParamValue(number=int(typed) if is_whole else float(typed))


def describe_domain(param: engine_pb2.Param) -> str:
    """Return the values that a parameter may have, in words."""
    if param.choices:
        return ", ".join(format_value(choice) for choice in param.choices)
    if param.type == engine_pb2.PARAM_TYPE_BOOLEAN:
        return "yes or no"
    if param.type == engine_pb2.PARAM_TYPE_STRING:
        return f"at most {param.max_length} characters" if param.HasField("max_length") else "text"
    return f"{param.minimum:g} to {param.maximum:g}"


def format_value(value: engine_pb2.ParamValue) -> str:
    """Return a value as it is typed."""
    match value.WhichOneof("kind"):
        case "number":
            return f"{value.number:g}"
        case "flag":
            return "yes" if value.flag else "no"
        case _:
            return one_line(value.text)
