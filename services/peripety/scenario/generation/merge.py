"""Merge of partial documents: an answer is applied to the present specification.

A part in the answer replaces the present one, an omitted part stays, and a part listed as `removed` is
deleted. So one schema serves the first draft, which starts from nothing, and every later change. An answer
with all required members of a specification is a complete one: parts that it omits are deleted, too.

`EditScope` limits the parts of a document that an answer may change.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from peripety.engine.schema_validation import (
    drop_invalid_nulls,
    format_pointer,
    parse_pointer,
    validate_against_schema,
)
from peripety.engine.schemas import SCENARIO_SPEC, SCENARIO_SPEC_1_1, schema_document
from peripety.engine.spec_sections import DIVIDED, SECTIONS, PartName, join_parts, part_name_at, split_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.engine.spec_sections import SpecPart
    from peripety.errors import Finding


_BUDGET = "negativity_budget"


@dataclass(frozen=True, slots=True)
class EditScope:
    """Set of changeable parts; a section includes all of its parts, and () the whole document."""

    names: frozenset[PartName]

    def allows(self, name: PartName) -> bool:
        """Return True if a part may be changed."""
        return any(name[:length] in self.names for length in range(len(name) + 1))


EVERYTHING = EditScope(frozenset({()}))


def scope_of_findings(document: Any, findings: Iterable[Finding]) -> EditScope:
    """Return the parts with findings.

    A missing part adds nothing, because new parts may always be added.
    """
    return EditScope(
        frozenset(_part_name(document, finding) for finding in findings if not _is_missing_part(finding))
    )


def _is_missing_part(finding: Finding) -> bool:
    return finding.code == "MISSING_KEY" and not finding.path


def _part_name(document: Any, finding: Finding) -> PartName:
    name = part_name_at(document, finding.path)
    # Its figures depend on each other, so a finding in one may need a change in another.
    return name[:1] if name[:1] == (_BUDGET,) else name


REMOVED_KEY = "removed"
"""The key of an answer that lists deleted parts."""


@dataclass(frozen=True, slots=True)
class MergeResult:
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
    """Return the schema of answers: that of specifications without required parts, plus `removed`.

    One schema serves documents of both versions, so that the prefix of every request is the same.
    """
    schema = deepcopy(dict(schema_document(SCENARIO_SPEC_1_1)))
    schema["properties"]["spec_version"] = {"enum": ["1.0", "1.1"]}
    del schema["required"]
    del schema["$defs"]["NegativityBudget"]["required"]
    for section in SECTIONS:
        # A section with a minimum of two entries may get one from an answer.
        schema["properties"][section].pop("minItems", None)
    schema["description"] = "Parts of a scenario; what is left out stays as it is."
    # An empty object within prose is not an answer.
    schema["minProperties"] = 1
    schema["properties"][REMOVED_KEY] = {
        "description": "JSON Pointers of parts to take away: /actions/<id>, /state/<key>, /horizon.",
        "items": {"type": "string"},
        "type": "array",
    }
    return schema


def merge(document: Mapping[str, Any], answer: Any, scope: EditScope = EVERYTHING) -> MergeResult:
    """Apply an answer to a document.

    Args:
        document: the present document; empty at first.
        answer: any JSON value. A null that the schema does not allow counts as omitted.
        scope: the parts that may be changed or deleted; new parts may always be added.
    """
    answer = drop_invalid_nulls(answer_schema(), answer)
    unfit = validate_against_schema(_shape_schema(), answer)
    contents = {part.name: part.value for part in split_parts(document)}
    present = dict(contents)
    left_out: dict[str, None] = {}
    if _is_complete(answer, unfit):
        contents = {name: value for name, value in contents.items() if not scope.allows(name)}
    for name, told in _find_removals(answer, document):
        if name in present and scope.allows(name):
            contents.pop(name, None)
            if told != format_pointer(name[:1]):
                # The section of a deleted part stays, even if it is empty, unless it is deleted itself.
                contents.setdefault(name[:1], [] if name[0] in SECTIONS else {})
        else:
            left_out[told] = None
    for part in _find_fitting_parts(answer, unfit):
        if part.name in present and not scope.allows(part.name):
            if part.value != present[part.name]:
                left_out[format_pointer(part.name)] = None
        else:
            contents[part.name] = part.value
    return MergeResult(join_parts(contents), tuple(left_out), tuple(map(_relocate_to_section, unfit)))


def restore_parts(
    document: Mapping[str, Any],
    earlier: Mapping[str, Any],
    names: Iterable[PartName],
) -> dict[str, Any]:
    """Return a document with some parts restored; parts that did not exist earlier are deleted."""
    contents = {part.name: part.value for part in split_parts(document)}
    before = {part.name: part.value for part in split_parts(earlier)}
    for name in names:
        if name in before:
            contents[name] = before[name]
        else:
            contents.pop(name, None)
    return join_parts(contents)


def _is_complete(answer: Any, violations: Iterable[Finding]) -> bool:
    """Return True if an answer has all required members of a specification."""
    if not isinstance(answer, dict) or any(finding.code != "UNKNOWN_KEY" for finding in violations):
        return False
    return answer.keys() >= set(schema_document(SCENARIO_SPEC)["required"])


def _find_removals(answer: Any, document: Mapping[str, Any]) -> Iterator[tuple[PartName, str]]:
    """Yield the deletions of an answer, by name and as written; the name of a missing part is empty.

    A part is referenced by its id or by its position, as in pointers; a section includes all its parts.
    """
    listed = answer.get(REMOVED_KEY) if isinstance(answer, dict) else None
    named = {part.path: part.name for part in split_parts(document)}
    names = set(named.values())
    of_section: dict[PartName, list[PartName]] = {}
    for name in named.values():
        of_section.setdefault(name[:1], []).append(name)
    told = [path for path in listed if isinstance(path, str)] if isinstance(listed, list) else []
    for path in dict.fromkeys(told):
        place = parse_pointer(path)
        if len(place) == 1:
            yield from ((name, path) for name in of_section.get(place, [()]))
        else:
            yield place if place in names else named.get(path, ()), path


@cache
def _shape_schema() -> Mapping[str, Any]:
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
    properties[REMOVED_KEY] = known["properties"][REMOVED_KEY]
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _find_fitting_parts(answer: Any, violations: Iterable[Finding]) -> Iterator[SpecPart]:
    """Yield the parts of an answer that fit into a specification."""
    misfits = [parse_pointer(finding.path) for finding in violations]
    for part in split_parts(answer):
        of_part = parse_pointer(part.path)
        inside = any(place[: len(of_part)] == of_part for place in misfits)
        below = any(of_part[: len(place)] == place for place in misfits)
        if not inside and not below and part.name != (REMOVED_KEY,):
            yield part


def _relocate_to_section(finding: Finding) -> Finding:
    """Return a finding about an entry as one about its section, because positions in the document differ."""
    section, *place = parse_pointer(finding.path)[:2] or ("",)
    if section not in SECTIONS or not place:
        return finding
    message = f"entry {place[0]} of the answer is left out: {finding.message}"
    return replace(finding, path=format_pointer((section,)), message=message)
