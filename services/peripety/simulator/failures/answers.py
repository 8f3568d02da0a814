"""Faults that change the content of an answer that is otherwise delivered correctly."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.sim.schema import check
from peripety.simulator.model import Part, Refusal, Stop, Text, Tool, ToolUse
from peripety.simulator.truth import tokens
from peripety.simulator.wire.json_text import compact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.simulator.scenario.model import Failure

__all__ = ["Said", "changed"]


class Said(NamedTuple):
    """Content and stop reason of an answer."""

    parts: tuple[Part, ...]
    stop: Stop


def changed(
    said: Said, failure: Failure, tools: Sequence[Tool], split: Callable[[str], tuple[str, ...]]
) -> Said:
    """Return the content changed by a fault; the same content if the fault does not affect it.

    Args:
        said: the scripted content; empty if nothing was scripted.
        failure: the fault.
        tools: the available tools.
        split: splits a text into stream chunks.
    """
    settings = failure.settings
    match failure.type:
        case "refusal":
            said = Said((Refusal(split(settings["message"])),), Stop.REFUSAL)
        case "partial_response":
            said = Said((Text(split(settings["partial_text"])),), Stop.END)
        case "length":
            said = Said(_first(said.parts, settings["tokens"], split), Stop.LENGTH)
        case "content_filter":
            half = sum(tokens.count(_written(part)) for part in said.parts) // 2
            said = Said(_first(said.parts, half, split), Stop.CONTENT_FILTER)
        case "truncated_arguments":
            said = _truncated(said, split)
        case "invalid_arguments":
            said = said._replace(parts=tuple(_invalid(part, tools, split) for part in said.parts))
    return said


def _written(part: Part) -> str:
    return "".join(part.pieces)


def _first(parts: Sequence[Part], limit: int, split: Callable[[str], tuple[str, ...]]) -> tuple[Part, ...]:
    """Return the beginning of an answer that fits into a number of tokens."""
    kept: list[Part] = []
    for part in parts:
        cut = tokens.pieces(_written(part))
        if limit < len(cut):
            if limit:
                kept.append(replace(part, pieces=split("".join(cut[:limit]))))
            break
        kept.append(part)
        limit -= len(cut)
    return tuple(kept)


def _truncated(said: Said, split: Callable[[str], tuple[str, ...]]) -> Said:
    calls = [place for place, part in enumerate(said.parts) if isinstance(part, ToolUse)]
    if not calls:
        return said
    *before, last = said.parts[: calls[-1] + 1]
    arguments = _written(last)
    return Said((*before, replace(last, pieces=split(arguments[: (len(arguments) + 1) // 2]))), Stop.LENGTH)


def _invalid(part: Part, tools: Sequence[Tool], split: Callable[[str], tuple[str, ...]]) -> Part:
    if not isinstance(part, ToolUse):
        return part
    schema = next((tool.schema for tool in tools if tool.name == part.name), {})
    attempts = list(_attempts(part.input))
    wrong = next((value for value in attempts if not _valid(value, schema)), attempts[0])
    return replace(part, pieces=split(compact(wrong).decode()))


def _valid(value: Any, schema: Mapping[str, Any]) -> bool:
    try:
        return not check(schema, value)
    except ValueError:
        return True  # an invalid schema rejects nothing


def _attempts(arguments: Any) -> Iterator[Any]:
    """Yield variations of the scripted arguments, the most likely model errors first."""
    if isinstance(arguments, dict):
        for name, value in arguments.items():
            yield arguments | {name: 0 if isinstance(value, str) else str(value)}
        for name in arguments:
            yield {key: value for key, value in arguments.items() if key != name}
        yield arguments | {"unexpected": True}
    yield [arguments]
