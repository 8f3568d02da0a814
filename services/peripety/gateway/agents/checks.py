"""Validation of a manifest and its inputs: all violations are collected before a run starts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.errors import FieldViolation, InvalidArgumentError
from peripety.gateway.agents.templates import names_in, phase_named
from peripety.gateway.checks import check_options, check_schema, check_tools
from peripety.gateway.model import GenerateRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from peripety.gateway.agents.model import Manifest, Phase
    from peripety.gateway.model import Options

__all__ = ["check_manifest", "check_replaced"]

_PHASE_ID = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MANIFEST = ".manifest"


def check_manifest(manifest: Manifest, inputs: Mapping[str, str]) -> None:
    """Reject a manifest that cannot run with these inputs.

    Raises:
        InvalidArgumentError: a field is wrong, or no phase uses an input; the violations name all of them.
    """
    violations = list(_of_all(manifest))
    for index, phase in enumerate(manifest.phases):
        field = f"{_MANIFEST}.phases[{index}]"
        violations += _of_phase(field, manifest, index, phase, inputs)
        if phase.phase_id in {earlier.phase_id for earlier in manifest.phases[:index]}:
            violations.append(FieldViolation(f"{field}.phase_id", f"must be unique: '{phase.phase_id}'"))
    used = {name for phase in manifest.phases for name in names_in(phase.input_template)}
    violations += [
        FieldViolation(
            f".inputs[{name}]", f"is not used by any phase; remove it, or add {{{{{name}}}}} to a template"
        )
        for name in inputs
        if name not in used
    ]
    _refuse(violations)


def check_replaced(manifest: Manifest, index: int, inputs: Mapping[str, str]) -> None:
    """Reject a replacement phase that cannot run at its position in the manifest.

    Raises:
        InvalidArgumentError: a field of the phase is wrong.
    """
    _refuse(list(_of_phase(".phase", manifest, index, manifest.phases[index], inputs)))


def _of_all(manifest: Manifest) -> Iterator[FieldViolation]:
    if not manifest.name.strip():
        yield FieldViolation(f"{_MANIFEST}.name", "is required")
    if not manifest.phases:
        yield FieldViolation(f"{_MANIFEST}.phases", "must be at least one")
    yield from _found(f"{_MANIFEST}.", lambda: check_tools(manifest.tools, None))
    yield from _of_options(f"{_MANIFEST}.options", manifest.options)


def _of_phase(
    field: str, manifest: Manifest, index: int, phase: Phase, inputs: Mapping[str, str]
) -> Iterator[FieldViolation]:
    if not _PHASE_ID.fullmatch(phase.phase_id):
        yield FieldViolation(f"{field}.phase_id", "must be lower_snake_case, of at most 64 characters")
    if not phase.input_template.strip():
        yield FieldViolation(f"{field}.input_template", "is required: the user message of the phase")
    earlier = {before.phase_id for before in manifest.phases[:index]}
    for name in names_in(phase.input_template):
        problem = _problem_of_name(name, inputs, earlier)
        if problem is not None:
            yield FieldViolation(f"{field}.input_template", problem)
    offered = {tool.name for tool in manifest.tools}
    for place, name in enumerate(phase.tool_names):
        if name not in offered:
            yield FieldViolation(f"{field}.tool_names[{place}]", f"is not a tool of the manifest: '{name}'")
    if phase.max_tool_rounds < 0:
        yield FieldViolation(f"{field}.max_tool_rounds", "must be 0, for the default, or more")
    yield from _of_options(f"{field}.options", phase.options)
    if phase.schema is not None:
        schema = phase.schema
        yield from _found(f"{field}.", lambda: check_schema(schema))
        if schema.advisory:
            yield FieldViolation(f"{field}.schema.advisory", "must be unset: a run repairs invalid answers")


def _problem_of_name(name: str, inputs: Collection[str], earlier: Collection[str]) -> str | None:
    phase = phase_named(name)
    if phase is None:
        return None if name in inputs else f"refers to {{{{{name}}}}}, which .inputs does not contain"
    return (
        None if phase in earlier else f"refers to {{{{{name}}}}}, but no earlier phase has the id '{phase}'"
    )


def _of_options(field: str, options: Options) -> Iterator[FieldViolation]:
    request = GenerateRequest(None, (), **options.set_fields())
    return _found(f"{field}.", lambda: check_options(request))


def _found(prefix: str, check: Callable[[], None]) -> Iterator[FieldViolation]:
    """Yield the violations that a gateway check raises, with field paths inside the manifest."""
    try:
        check()
    except InvalidArgumentError as error:
        for violation in error.violations:
            yield FieldViolation(prefix + violation.field, violation.reason)


def _refuse(violations: list[FieldViolation]) -> None:
    if violations:
        reasons = "; ".join(f"{violation.field} {violation.reason}" for violation in violations)
        raise InvalidArgumentError(
            f"manifest invalid: {reasons}", code="MANIFEST_INVALID", violations=violations
        )
