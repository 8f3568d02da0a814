"""Inputs of the test generation commands, as messages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.cli.documents import read_document, read_specification
from peripety.cli.policy_input import source as policy_source
from peripety.cli.text import printable, read_text
from peripety.errors import InvalidArgumentError
from peripety.testgen.environment.introspecting import introspect

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Limits", "categories", "context", "description", "environment", "subject"]

_STORED = re.compile(r"scn_[0-9a-f]{24}")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run; None for the default of the server.

    Attributes:
        tokens: maximum tokens.
        seconds: maximum time.
        rounds: maximum number of rounds.
        target: number of tests at which the run stops.
        floor: True to start with baseline tests, which need no model.
        parallel: True to process categories at the same time.
    """

    tokens: int | None
    seconds: float | None
    rounds: int | None
    target: int | None
    floor: bool
    parallel: bool

    def config(self) -> pb.TestGenConfig:
        """Return the limits as a message. The server applies the defaults."""
        config = pb.TestGenConfig(
            max_total_tokens=self.tokens,
            max_total_rounds=self.rounds,
            target_total_tests=self.target,
            parallel_categories=self.parallel,
            combinatorial_floor=None if self.floor else False,
        )
        if self.seconds is not None:
            config.max_total_time.FromTimedelta(timedelta(seconds=self.seconds))
        return config


def description(given: str | None, file: str | None) -> str:
    """Return the description of what to test.

    Raises:
        BadParameter: no description is given, or two.
        InvalidArgumentError: the file cannot be read.
    """
    if (given is None) == (file is None):
        raise typer.BadParameter("the description is missing: add DESCRIPTION or --file FILE")
    if file is None:
        return read_text(given or "", "DESCRIPTION")
    document = read_document(file)
    if document.too_large:
        reason = "is longer than 1 MiB; the limit is 100 KiB"
        raise InvalidArgumentError(f"{printable(file)} {reason}", code="BAD_TEXT")
    try:
        return document.content.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"{printable(file)} is not UTF-8 (byte {error.start + 1}); save or convert it as UTF-8",
            code="BAD_TEXT",
        ) from None


def categories(given: Sequence[str]) -> list[pb.Category]:
    """Return custom categories: each a name, with its description after =."""
    parts = (one.partition("=") for one in given)
    return [pb.Category(name=name.strip(), description=about.strip()) for name, _, about in parts]


def context(named: str | None, subject: pb.Subject | None, *, own: bool) -> pb.TaskContext.ValueType:
    """Return the kind of the task: the given one, else derived from the categories and the subject."""
    if named is not None:
        return pb.TaskContext.Value(f"TASK_CONTEXT_{named.upper()}")
    if own:
        return pb.TASK_CONTEXT_CUSTOM
    match subject.WhichOneof("subject") if subject else None:
        case "spec" | "scenario_id":
            return pb.TASK_CONTEXT_SCENARIO
        case "policy":
            return pb.TASK_CONTEXT_POLICY
        case "command":
            return pb.TASK_CONTEXT_BENCHMARK
    return pb.TASK_CONTEXT_PROMPT


def subject(
    scenario: str | None, policy: str | None, argv: Sequence[str] | None, directory: Path | None
) -> pb.Subject | None:
    """Return the subject that tests run on; None if no option names one.

    Args:
        scenario: a specification, or the id of a stored scenario.
        policy: a folder, a document, or the id of a stored policy.
        argv: a command; None for no command.
        directory: the working directory of the command.

    Raises:
        BadParameter: several subjects are given, or the command is empty.
    """
    if sum(one is not None for one in (scenario, policy, argv)) > 1:
        raise typer.BadParameter("--scenario, --policy and --command exclude each other; use one")
    if scenario is not None:
        if _STORED.fullmatch(scenario) and not Path(scenario).exists():
            return pb.Subject(scenario_id=scenario)
        return pb.Subject(spec=read_specification(scenario))
    if policy is not None:
        return pb.Subject(policy=policy_source(policy).policy)
    if argv is None:
        return None
    if not argv:
        raise typer.BadParameter("the command is missing after --: --command -- PROGRAM ARGUMENT...")
    where = "" if directory is None else str(directory.resolve())
    return pb.Subject(command=pb.CommandSubject(argv=argv, working_directory=where))


def environment(directory: Path, task: str) -> pb.EnvironmentInfo:
    """Describe the content of a directory of this machine. Nothing in it is executed.

    Raises:
        InvalidArgumentError: the path is not a directory.
    """
    found = introspect(directory, task)
    return pb.EnvironmentInfo(
        platform=found.platform,
        languages=found.languages,
        available_tools=found.available_tools,
        prohibited_tools=found.prohibited_tools,
        files=(
            pb.FilePreview(
                path=one.path, size_bytes=one.size_bytes, preview=one.preview, structure=one.structure
            )
            for one in found.files
        ),
        file_count=found.file_count,
        cpu_count=found.cpu_count,
        memory_bytes=found.memory_bytes,
    )
