"""Partial documents: what an answer says of a specification, put into what there is of it.

What an answer says of a part replaces it, what it leaves out stays, and what it lists as `removed` goes. So
one schema serves the first draft, which starts from nothing, and every change after it. An answer that has
everything a specification needs is a whole one: what that leaves out goes as well.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from peripety.scenarios.parts import DIVIDED, SECTIONS, Name, assembled, parts
from peripety.scenarios.writing.scope import EVERYTHING
from peripety.sim.schema import check, pointer, segments, without_nulls
from peripety.sim.schemas import SCENARIO_SPEC, schema_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.errors import Finding
    from peripety.scenarios.parts import Part
    from peripety.scenarios.writing.scope import Scope

__all__ = ["REMOVED", "Merged", "answer_schema", "merge", "restored"]

REMOVED = "removed"
"""The key of an answer that lists what is taken away."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A document after an answer.

    Attributes:
        document: all of it.
        left_out: JSON Pointers, with names in place of indices, of what the answer changes or removes and may
            not, or what is not there to be removed.
        findings: what of the answer is no part of a specification, and therefore not in the document either.
    """

    document: dict[str, Any]
    left_out: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@cache
def answer_schema() -> Mapping[str, Any]:
    """The schema of answers: that of specifications with nothing required that is a part, and `removed`."""
    schema = deepcopy(dict(schema_document(SCENARIO_SPEC)))
    del schema["required"]
    del schema["$defs"]["NegativityBudget"]["required"]
    for section in SECTIONS:
        # Of a section that needs two, an answer may say one.
        schema["properties"][section].pop("minItems", None)
    schema["description"] = "Parts of a scenario; what is left out stays as it is."
    # An empty object in prose is no answer.
    schema["minProperties"] = 1
    schema["properties"][REMOVED] = {
        "description": "JSON Pointers of parts to take away: /actions/<id>, /state/<key>, /horizon.",
        "items": {"type": "string"},
        "type": "array",
    }
    return schema


def merge(document: Mapping[str, Any], answer: Any, scope: Scope = EVERYTHING) -> Merged:
    """Put an answer into a document.

    Args:
        document: what there is; empty at first.
        answer: any JSON value. A null that the schema has no place for counts as left out.
        scope: the parts that may be changed or removed; whatever it is, new ones may be added.
    """
    answer = without_nulls(answer_schema(), answer)
    unfit = check(_shape(), answer)
    contents = {part.name: part.value for part in parts(document)}
    present = dict(contents)
    left_out: dict[str, None] = {}
    if _is_whole(answer, unfit):
        contents = {name: value for name, value in contents.items() if not scope.holds(name)}
    for name, told in _removed(answer, document):
        if name in present and scope.holds(name):
            contents.pop(name, None)
            if told != pointer(name[:1]):
                # What held it stays, were it empty, unless it is itself removed.
                contents.setdefault(name[:1], [] if name[0] in SECTIONS else {})
        else:
            left_out[told] = None
    for part in _fit_parts(answer, unfit):
        if part.name in present and not scope.holds(part.name):
            if part.value != present[part.name]:
                left_out[pointer(part.name)] = None
        else:
            contents[part.name] = part.value
    return Merged(assembled(contents), tuple(left_out), tuple(map(_in_answer, unfit)))


def restored(
    document: Mapping[str, Any], earlier: Mapping[str, Any], names: Iterable[Name]
) -> dict[str, Any]:
    """A document in which some parts are as they were earlier; what was not there then is gone."""
    contents = {part.name: part.value for part in parts(document)}
    before = {part.name: part.value for part in parts(earlier)}
    for name in names:
        if name in before:
            contents[name] = before[name]
        else:
            contents.pop(name, None)
    return assembled(contents)


def _is_whole(answer: Any, unfit: Iterable[Finding]) -> bool:
    """Whether an answer has everything a specification needs, whatever it has besides."""
    if not isinstance(answer, dict) or any(finding.code != "UNKNOWN_KEY" for finding in unfit):
        return False
    return answer.keys() >= set(schema_document(SCENARIO_SPEC)["required"])


def _removed(answer: Any, document: Mapping[str, Any]) -> Iterator[tuple[Name, str]]:
    """What an answer removes, by name, and as it says it; the name of what is not there is empty.

    A part is named as it is known or, as pointers have it, by its place; a section stands for all its parts.
    """
    listed = answer.get(REMOVED) if isinstance(answer, dict) else None
    named = {part.path: part.name for part in parts(document)}
    names = set(named.values())
    of_section: dict[Name, list[Name]] = {}
    for name in named.values():
        of_section.setdefault(name[:1], []).append(name)
    told = [path for path in listed if isinstance(path, str)] if isinstance(listed, list) else []
    for path in dict.fromkeys(told):
        place = segments(path)
        if len(place) == 1:
            yield from ((name, path) for name in of_section.get(place, [()]))
        else:
            yield place if place in names else named.get(path, ()), path


@cache
def _shape() -> Mapping[str, Any]:
    """What an answer has to be so that its parts can be told from each other, whatever is in them."""
    known = answer_schema()
    properties: dict[str, Any] = dict.fromkeys(known["properties"], True)
    for section, key in SECTIONS.items():
        entry = {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
        properties[section] = {"type": "array", "items": entry}
    for key in DIVIDED:
        properties[key] = {"type": "object"}
    budget = known["$defs"]["NegativityBudget"]["properties"]
    properties["negativity_budget"] |= {
        "properties": dict.fromkeys(budget, True),
        "additionalProperties": False,
    }
    properties[REMOVED] = known["properties"][REMOVED]
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _fit_parts(answer: Any, unfit: Iterable[Finding]) -> Iterator[Part]:
    """The parts of an answer that have a place in a specification."""
    misfits = [segments(finding.path) for finding in unfit]
    for part in parts(answer):
        of_part = segments(part.path)
        inside = any(place[: len(of_part)] == of_part for place in misfits)
        below = any(of_part[: len(place)] == place for place in misfits)
        if not inside and not below and part.name != (REMOVED,):
            yield part


def _in_answer(finding: Finding) -> Finding:
    """A finding about an entry of an answer, as one about its section: the document has other places."""
    section, *place = segments(finding.path)[:2] or ("",)
    if section not in SECTIONS or not place:
        return finding
    message = f"entry {place[0]} of the answer is left out: {finding.message}"
    return replace(finding, path=pointer((section,)), message=message)
