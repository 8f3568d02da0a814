"""Task folders: which files are tasks, pages, and what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.errors import InvalidArgumentError
from peripety.testgen.task_folder import MAX_TASK_BYTES, list_tasks

if TYPE_CHECKING:
    from pathlib import Path


def write_tasks(folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"{name}.md").write_text(f"# The {name}\n\nIt adds.\n", encoding="utf-8")


def test_a_file_and_a_folder_are_tasks_and_only_the_folder_has_an_environment(tmp_path: Path) -> None:
    write_tasks(tmp_path, "alpha")
    (tmp_path / "beta").mkdir()
    (tmp_path / "beta" / "task.md").write_text("\nAdds numbers.\n", encoding="utf-8")
    (tmp_path / "beta" / "tool.py").write_text("def add(a, b):\n    return a + b\n", encoding="utf-8")
    alpha, beta = list_tasks(tmp_path).items
    assert (alpha.task_id, alpha.title, alpha.environment) == ("alpha", "The alpha", None)
    assert alpha.description == "# The alpha\n\nIt adds.\n"
    assert (beta.task_id, beta.title) == ("beta", "Adds numbers.")
    assert beta.environment is not None
    assert "tool.py" in {file.path for file in beta.environment.files}


def test_pages_follow_each_other_without_gaps(tmp_path: Path) -> None:
    write_tasks(tmp_path, "a", "b", "c")
    first = list_tasks(tmp_path, 2)
    second = list_tasks(tmp_path, 2, first.next_page_token)
    assert [task.task_id for task in (*first.items, *second.items)] == ["a", "b", "c"]
    assert second.next_page_token == ""


def test_what_cannot_be_a_task_is_left_out(tmp_path: Path) -> None:
    write_tasks(tmp_path, "good")
    (tmp_path / "large.md").write_bytes(b"x" * (MAX_TASK_BYTES + 1))
    (tmp_path / "binary.md").write_bytes(b"\xff\xfe")
    (tmp_path / ".hidden.md").write_text("hidden", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("a note", encoding="utf-8")
    assert [task.task_id for task in list_tasks(tmp_path).items] == ["good"]


def test_without_a_folder_there_are_no_tasks(tmp_path: Path) -> None:
    assert list_tasks(None).items == ()
    assert list_tasks(tmp_path / "absent").items == ()
    with pytest.raises(InvalidArgumentError, match="page_size"):
        list_tasks(None, -1)
