"""Changed lines of a directory in a Git repository."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.cli.output import printable
from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_HUNK_PATTERN = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_MAX_SECONDS = 60
_MAX_FILE_BYTES = 1024 * 1024


def find_changes(directory: Path, revision: str) -> pb.SubjectChanges:
    """Return the lines of a directory that differ from a revision, with uncommitted ones and new files.

    Of removed lines, these are the lines around them. Ignored files are left out.

    Args:
        directory: a directory of the working tree.
        revision: a commit, a branch or a tag.

    Raises:
        InvalidArgumentError: Git is not installed, the directory is not in a repository, or the revision is
            not known.
    """
    commit = _git(directory, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if commit is None:
        raise InvalidArgumentError(
            f"--diff: {printable(revision)} is not a revision of a Git repository with the directory"
            f" {printable(str(directory))}; name a commit, a branch or a tag",
            code="NO_SUCH_REVISION",
        )
    options = ("--unified=0", "--no-ext-diff", "--no-textconv", "--no-color", "--no-prefix", "--no-renames")
    diff = _git(
        directory, "-c", "core.quotePath=false", "diff", *options, "--relative", commit.strip(), "--", "."
    )
    changed: dict[str, list[pb.LineRange]] = {}
    for path, lines in _iterate_hunks(diff or ""):
        changed.setdefault(path, []).append(lines)
    untracked = _git(directory, "ls-files", "--others", "--exclude-standard", "-z") or ""
    for path in filter(None, untracked.split("\0")):
        count = _count_lines(directory / path)
        if count:
            changed[path] = [pb.LineRange(first=1, last=count)]
    files = [pb.ChangedFile(path=path, lines=lines) for path, lines in changed.items()]
    return pb.SubjectChanges(revision=revision, files=files)


def _git(directory: Path, *arguments: str) -> str | None:
    """Return the output of Git; None if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - each argument is an option, or follows --end-of-options
            ["git", *arguments],  # noqa: S607 - the one of the user
            cwd=directory,
            capture_output=True,
            timeout=_MAX_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InvalidArgumentError(
            f"--diff: git cannot be run in {printable(str(directory))}: {error}", code="NO_SUCH_REVISION"
        ) from None
    return done.stdout.decode(errors="replace") if not done.returncode else None


def _iterate_hunks(diff: str) -> Iterator[tuple[str, pb.LineRange]]:
    path = ""
    is_header = False
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            is_header = True
        elif is_header and line.startswith("+++ "):
            path = line.removeprefix("+++ ").rstrip("\t")
        found = _HUNK_PATTERN.match(line)
        if found is None:
            continue
        is_header = False
        first, count = int(found[1]), int(found[2] or 1)
        if path != "/dev/null":
            last = first + count - 1 if count else first + 1
            yield path, pb.LineRange(first=max(first, 1), last=last)


def _count_lines(path: Path) -> int:
    try:
        if path.is_symlink() or path.stat().st_size > _MAX_FILE_BYTES:
            return 0
        content = path.read_bytes()
    except OSError:
        return 0
    return 0 if b"\0" in content else len(content.splitlines())
