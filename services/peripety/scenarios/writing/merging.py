"""Merging of partial documents: an answer is applied to the present specification.

A part in the answer replaces the present one, an omitted part stays, and a part listed as `removed` is
deleted. So one schema serves the first draft, which starts from nothing, and every later change. An answer
with all required members of a specification is a complete one: parts that it omits are deleted, too.
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
"""The key of an answer that lists deleted parts."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Document after an answer.

    Attributes:
        document: the document.
        left_out: JSON Pointers, with names in place of indices, of changes and deletions outside the scope,
            and of deletions of missing parts.
        findings: findings of members that do not fit into a specification, and are therefore not in the
            document.
    """

    document: dict[str, Any]
    left_out: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@cache
def answer_schema() -> Mapping[str, Any]:
    """Return the schema of answers: that of specifications without required parts, plus `removed`."""
    schema = deepcopy(dict(schema_document(SCENARIO_SPEC)))
    del schema["required"]
    del schema["$defs"]["NegativityBudget"]["required"]
    for section in SECTIONS:
        # A section with a minimum of two entries may get one from an answer.
        schema["properties"][section].pop("minItems", None)
    schema["description"] = "Parts of a scenario; what is left out stays as it is."
    # An empty object within prose is not an answer.
    schema["minProperties"] = 1
    schema["properties"][REMOVED] = {
        "description": "JSON Pointers of parts to take away: /actions/<id>, /state/<key>, /horizon.",
        "items": {"type": "string"},
        "type": "array",
    }
    return schema


def merge(document: Mapping[str, Any], answer: Any, scope: Scope = EVERYTHING) -> Merged:
    """Apply an answer to a document.

    Args:
        document: the present document; empty at first.
        answer: any JSON value. A null that the schema does not allow counts as omitted.
        scope: the parts that may be changed or deleted; new parts may always be added.
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
                # The section of a deleted part stays, even if it is empty, unless it is deleted itself.
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
    """Return a document with some parts restored; parts that did not exist earlier are deleted."""
    contents = {part.name: part.value for part in parts(document)}
    before = {part.name: part.value for part in parts(earlier)}
    for name in names:
        if name in before:
            contents[name] = before[name]
        else:
            contents.pop(name, None)
    return assembled(contents)


def _is_whole(answer: Any, unfit: Iterable[Finding]) -> bool:
    """Return True if an answer has all required members of a specification."""
    if not isinstance(answer, dict) or any(finding.code != "UNKNOWN_KEY" for finding in unfit):
        return False
    return answer.keys() >= set(schema_document(SCENARIO_SPEC)["required"])


def _removed(answer: Any, document: Mapping[str, Any]) -> Iterator[tuple[Name, str]]:
    """Yield the deletions of an answer, by name and as written; the name of a missing part is empty.

    A part is referenced by its id or by its position, as in pointers; a section includes all its parts.
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
    """Return the minimal schema under which the parts of an answer can be distinguished."""
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
    """Yield the parts of an answer that fit into a specification."""
    misfits = [segments(finding.path) for finding in unfit]
    for part in parts(answer):
        of_part = segments(part.path)
        inside = any(place[: len(of_part)] == of_part for place in misfits)
        below = any(of_part[: len(place)] == place for place in misfits)
        if not inside and not below and part.name != (REMOVED,):
            yield part


def _in_answer(finding: Finding) -> Finding:
    """Return a finding about an entry as one about its section, because positions in the document differ."""
    section, *place = segments(finding.path)[:2] or ("",)
    if section not in SECTIONS or not place:
        return finding
    message = f"entry {place[0]} of the answer is left out: {finding.message}"
    return replace(finding, path=pointer((section,)), message=message)
