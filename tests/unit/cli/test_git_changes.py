"""Changed lines of a directory in a Git repository."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from peripety.cli.git_changes import find_changes
from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pathlib import Path


def git(directory: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=n@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    folder = tmp_path / "src"
    folder.mkdir()
    (tmp_path / "outside.py").write_text("a\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    for name in ("one.py", "zwei \u00e4.py", "gone.py", "same.py"):
        (folder / name).write_text("".join(f"line {number}\n" for number in range(1, 11)))
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    return folder


def lines_of(directory: Path, revision: str = "HEAD") -> dict[str, list[tuple[int, int]]]:
    found = find_changes(directory, revision)
    assert found.revision == revision
    return {file.path: [(one.first, one.last) for one in file.lines] for file in found.files}


def test_changed_lines_are_those_of_the_directory_since_the_revision(repository: Path) -> None:
    assert lines_of(repository) == {}
    lines = [f"line {number}\n" for number in range(1, 11)]
    (repository / "one.py").write_text("".join(["new\n", *lines[:4], "++ changed\n", *lines[6:9], "end"]))
    (repository / "zwei \u00e4.py").write_text("".join([*lines[:2], *lines[5:]]))
    (repository / "gone.py").unlink()
    (repository.parent / "outside.py").write_text("b\n")
    (repository / "added.py").write_text("a\nb\nc")
    (repository / "ignored.log").write_text("a\n")
    (repository / "data.bin").write_bytes(b"\0\n")
    expected = {
        "one.py": [(1, 1), (6, 6), (10, 10)],
        "zwei \u00e4.py": [(2, 3)],  # the lines around the removed ones
        "added.py": [(1, 3)],
    }
    assert lines_of(repository) == expected
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "two")
    assert lines_of(repository) == {}
    committed = lines_of(repository, "HEAD~1")
    assert committed.pop("data.bin", None) is None
    assert committed == expected


def test_an_unknown_revision_and_a_directory_outside_of_a_repository_are_refused(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for directory, revision in ((repository, "nope"), (repository, "--output=x"), (elsewhere, "HEAD")):
        with pytest.raises(InvalidArgumentError, match="is not a revision") as refused:
            find_changes(directory, revision)
        assert refused.value.code == "NO_SUCH_REVISION"
    assert not (repository / "x").exists()
