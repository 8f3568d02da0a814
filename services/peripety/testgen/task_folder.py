"""Task folder: tasks that a server offers for test generation, as Markdown files.

A task is `NAME.md`, or `NAME/task.md`. In the second form the folder is the environment of the task: its
files are described, and never executed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.core.validation import Page, resolve_page_size
from peripety.errors import PeripetyError
from peripety.testgen.environment import scan_environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from peripety.testgen.types import TaskEnvironment

MAX_TASK_BYTES = 100 * 1024
"""Maximum size of a task, as of the description of a run."""

_FILE = "task.md"
_SUFFIX = ".md"
_MAX_PAGE = 100

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TestTask:
    """A task.

    Attributes:
        task_id: its name.
        title: its first heading, else its first line.
        description: its text.
        environment: the files beside it; None if it has none.
    """

    __test__ = False

    task_id: str
    title: str
    description: str
    environment: TaskEnvironment | None


def list_tasks(folder: Path | None, page_size: int = 0, page_token: str = "") -> Page[TestTask]:
    """Return a page of the tasks in a folder; empty without a folder.

    Files that are too large, or not UTF-8, are left out and logged.

    Args:
        folder: the folder.
        page_size: maximum number of tasks; 0 for 50, at most 100.
        page_token: name of the last task of the previous page; empty for the first page.

    Raises:
        InvalidArgumentError: the page size is negative.
    """
    limit = min(resolve_page_size(page_size), _MAX_PAGE)
    files = _find_tasks(folder) if folder is not None else {}
    names = sorted(name for name in files if name > page_token)
    tasks = tuple(task for name in names[:limit] if (task := _read_task(name, files[name])) is not None)
    return Page(tasks, names[limit - 1] if len(names) > limit else "")


def _find_tasks(folder: Path) -> dict[str, Path]:
    try:
        return dict(_iterate_tasks(folder))
    except OSError as error:
        _log.warning(
            "cannot read the folder of tasks", extra={"folder": str(folder), "reason": error.strerror}
        )
        return {}


def _iterate_tasks(folder: Path) -> Iterator[tuple[str, Path]]:
    for entry in folder.iterdir():
        if entry.name.startswith("."):
            continue
        if entry.suffix == _SUFFIX and entry.is_file():
            yield entry.stem, entry
        elif (entry / _FILE).is_file():
            yield entry.name, entry / _FILE


def _read_task(name: str, file: Path) -> TestTask | None:
    try:
        content = file.read_bytes()
        if len(content) > MAX_TASK_BYTES:
            reason = f"has {len(content)} bytes; at most {MAX_TASK_BYTES} are read"
            _log.warning("task is left out", extra={"file": str(file), "reason": reason})
            return None
        text = content.decode()
        environment = scan_environment(file.parent, text) if file.name == _FILE else None
    except (OSError, UnicodeDecodeError, PeripetyError) as error:
        _log.warning("task is left out", extra={"file": str(file), "reason": str(error)})
        return None
    title = next((line.lstrip("# ").strip() for line in text.splitlines() if line.strip("# ")), name)
    return TestTask(name, title, text, environment)
