"""Directory scan for the environment of a task."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from peripety.errors import InvalidArgumentError
from peripety.testgen.environment.languages import languages_in
from peripety.testgen.environment.prohibitions import prohibited_in
from peripety.testgen.environment.secrets import is_secret
from peripety.testgen.environment.structure import structure_of
from peripety.testgen.model import Environment, FilePreview

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAX_FILES", "MAX_PREVIEW_BYTES", "introspect"]

MAX_FILES = 100
"""Maximum number of inspected files; those nearest to the top come first."""

MAX_PREVIEW_BYTES = 2 * 1024
"""Maximum size of a file preview."""

_MAX_READ = 256 * 1024
_MAX_SEEN = 20_000
_SKIPPED = frozenset({"node_modules", "__pycache__", "target", "build", "dist", "venv", "site-packages"})
_TOOLS = (
    *("awk", "bash", "bzip2", "cargo", "cc", "cmake", "curl", "docker", "find", "gcc", "git", "go", "grep"),
    *(
        "gzip",
        "java",
        "javac",
        "jq",
        "make",
        "mvn",
        "node",
        "npm",
        "openssl",
        "perl",
        "pip",
        "psql",
        "python3",
    ),
    *(
        "R",
        "redis-cli",
        "rsync",
        "ruby",
        "rustc",
        "sed",
        "sqlite3",
        "ssh",
        "tar",
        "unzip",
        "wget",
        "xz",
        "zip",
    ),
)


def introspect(directory: Path, description: str = "") -> Environment:
    """Describe a directory, and the machine that it is on.

    Files are read, and nothing is executed. Hidden files and build output are skipped; files that may hold
    secrets are listed by name only.

    Args:
        directory: the directory of the task.
        description: the task, which may name prohibited tools.

    Raises:
        InvalidArgumentError: the path is not a readable directory.
    """
    try:
        os.scandir(directory).close()
    except OSError as error:
        raise InvalidArgumentError(
            f"directory '{directory}' cannot be read ({error.strerror}); choose another one",
            code="NO_SUCH_DIRECTORY",
        ) from None
    seen = [*_files(directory)]
    shown = sorted(seen, key=lambda path: (len(path.relative_to(directory).parts), path))[:MAX_FILES]
    previews = [_preview(path, directory) for path in sorted(shown)]
    prohibited = prohibited_in(description)
    available = [tool for tool in _TOOLS if shutil.which(tool) and tool not in prohibited]
    return Environment(
        platform=f"{platform.system().lower()}/{platform.machine()}",
        languages=languages_in(directory, seen),
        available_tools=tuple(available),
        prohibited_tools=prohibited,
        files=tuple(previews),
        file_count=len(seen),
        cpu_count=os.cpu_count() or 0,
        memory_bytes=_memory(),
    )


def _files(directory: Path) -> Iterator[Path]:
    """Yield the files of a directory in order, up to a limit."""
    count = 0
    for place, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(names):
            path = Path(place, name)
            if not name.startswith(".") or is_secret(Path(name)):
                if path.is_symlink() or not path.is_file():
                    continue
                yield path
                count += 1
                if count == _MAX_SEEN:
                    return


def _preview(path: Path, directory: Path) -> FilePreview:
    place, size = path.relative_to(directory), path.lstat().st_size
    name = os.fsencode(place.as_posix()).decode(errors="replace")
    if is_secret(place):
        return FilePreview(name, size)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_READ)
    except OSError:
        return FilePreview(name, size)
    try:
        # The limit may split the last character.
        text = content.decode() if size <= _MAX_READ else content.decode(errors="ignore")
    except UnicodeDecodeError:
        return FilePreview(name, size)
    if "\0" in text:
        return FilePreview(name, size)
    preview = text.encode()[:MAX_PREVIEW_BYTES].decode(errors="ignore")
    return FilePreview(name, size, preview, structure_of(path.name, text))


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0
