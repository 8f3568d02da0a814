"""Inputs of the policy commands: folders, documents, suites, and ids of stored policies."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.cli.documents import STDIN, opened
from peripety.cli.parse import messages_in
from peripety.cli.text import MAX_INPUT_BYTES, printable
from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["POLICY", "SCENARIOS", "Order", "Source", "order", "source", "suite_bytes"]

POLICY, SCENARIOS = "policy.json", "scenarios.json"
"""File names of a compiled policy and its suite in a folder."""

_CONSTITUTION, _TOOLS = "constitution.md", "tools.json"
_HANDWRITTEN, _FOUNDATION = "handwritten.json", "foundation.json"
_STORED = re.compile(r"pol_[0-9a-f]{8,64}")
_MAX_BYTES = 16 * MAX_INPUT_BYTES


@dataclass(frozen=True, slots=True)
class Order:
    """Sources of a policy to compile; None for a source that does not exist.

    Attributes:
        constitution: the written policy.
        tools: the tools that the policy covers.
        handwritten: scenarios that must hold.
        foundation: invariants and lists.
    """

    constitution: str
    tools: str
    handwritten: str | None = None
    foundation: str | None = None

    def request(self) -> pb.CompilePolicyRequest:
        """Return the request, without its id and its options.

        Raises:
            InvalidArgumentError: a file cannot be read.
        """
        request = pb.CompilePolicyRequest(constitution=_text(self.constitution))
        request.tools.extend(messages_in(pb.ToolAnnotation, _json(self.tools), self.tools))
        if self.handwritten is not None:
            request.handwritten_scenarios.extend(_suite(self.handwritten))
        if self.foundation is not None:
            request.foundation = _bytes(self.foundation)
        return request


@dataclass(frozen=True, slots=True)
class Source:
    """A policy, and scenarios for it.

    Attributes:
        policy: the policy document, or the id of a stored policy.
        scenarios: the scenarios; None for those stored with the policy.
    """

    policy: pb.PolicySource
    scenarios: Sequence[pb.PolicyScenario] | None

    def required_scenarios(self) -> Sequence[pb.PolicyScenario]:
        """Return the scenarios; empty for those stored with the policy.

        Raises:
            BadParameter: no scenarios are given, and the policy is not stored.
        """
        if self.scenarios is None and not self.policy.policy_id:
            raise typer.BadParameter("scenarios are missing: add --scenarios FILE")
        return self.scenarios or ()


def order(
    folder: Path | None,
    constitution: str | None,
    tools: str | None,
    handwritten: str | None,
    foundation: str | None,
) -> Order:
    """Return the sources that the options name. A file option overrides the file of that kind in the folder.

    Raises:
        BadParameter: the policy or the tools are missing, or the folder is not a folder.
    """
    if folder is not None:
        if not folder.is_dir():
            raise typer.BadParameter(
                f"{folder} is not a folder; to use files, add --constitution FILE and --tools FILE"
            )
        constitution = constitution or str(folder / _CONSTITUTION)
        tools = tools or str(folder / _TOOLS)
        handwritten = handwritten or _if_there(folder / _HANDWRITTEN)
        foundation = foundation or _if_there(folder / _FOUNDATION)
    if constitution is None or tools is None:
        raise typer.BadParameter("input is missing: add a folder, or --constitution FILE and --tools FILE")
    if [constitution, tools, handwritten, foundation].count(STDIN) > 1:
        raise typer.BadParameter("only one file can be standard input")
    return Order(constitution, tools, handwritten, foundation)


def source(named: str, scenarios: str | None = None) -> Source:
    """Return the policy that an argument names, and scenarios for it.

    Args:
        named: a compiled folder, a policy document, `-`, or the id of a stored policy.
        scenarios: a file with scenarios; None for those in the folder or stored with the policy.
    """
    given = _suite(scenarios) if scenarios is not None else None
    path = Path(named)
    if path.is_dir():
        given = _suite(str(path / SCENARIOS)) if given is None else given
        return Source(pb.PolicySource(document=_bytes(str(path / POLICY))), given)
    if _STORED.fullmatch(named) and not path.exists():
        return Source(pb.PolicySource(policy_id=named), given)
    return Source(pb.PolicySource(document=_bytes(named)), given)


def suite_bytes(scenarios: Sequence[dict[str, Any]]) -> bytes:
    """Return the content of a suite file, indented so that it can be edited."""
    return json.dumps(scenarios, ensure_ascii=False, indent=2).encode() + b"\n"


def _suite(file: str) -> list[pb.PolicyScenario]:
    return messages_in(pb.PolicyScenario, _json(file), file)


def _if_there(path: Path) -> str | None:
    return str(path) if path.exists() else None


def _json(file: str) -> Any:
    try:
        return json.loads(_text(file))
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"{printable(file)} is not JSON: {error}", code="FILE_INVALID") from None


def _text(file: str) -> str:
    try:
        return _bytes(file).decode()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"{printable(file)} is not UTF-8 (byte {error.start + 1}); save or convert it as UTF-8",
            code="BAD_TEXT",
        ) from None


def _bytes(file: str) -> bytes:
    with opened(file) as stream:
        content = stream.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise InvalidArgumentError(f"{printable(file)} is longer than 16 MiB", code="FILE_INVALID")
    return content
