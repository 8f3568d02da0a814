"""Referenced files of a script: `{"$file": "relative/path"}` is replaced by the content of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.scenario.documents import DocumentError, parse_json

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MAX_BYTES", "FileError", "Files"]

MAX_BYTES = 16 * 2**20


class FileError(Exception):
    """A file that cannot be used; the message has the reason and the remedy."""


class Files:
    """Cache of the files in one directory and below; each file is read once.

    Args:
        directory: the root of relative paths, which they cannot leave; None if no files are available.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory and directory.resolve()
        self._texts: dict[str, str] = {}

    def value(self, name: str) -> Any:
        """Return the content of a file: the parsed value of a `.json`, else the text.

        Raises:
            FileError: the file cannot be used.
        """
        text = self.text(name)
        if not name.endswith(".json"):
            return text
        try:
            return parse_json(text)
        except DocumentError as error:
            place = f"{name}:{error.place.line}:{error.place.column}"
            raise FileError(f"{place}: {error.sentence}") from None

    def text(self, name: str) -> str:
        """Return the text of a file.

        Raises:
            FileError: the file cannot be used.
        """
        if name not in self._texts:
            self._texts[name] = self._read(name)
        return self._texts[name]

    def _read(self, name: str) -> str:
        if self._directory is None:
            raise FileError("`$file` needs a script that was read from a file")
        try:
            path = (self._directory / name).resolve()
            if not path.is_relative_to(self._directory):
                raise FileError(f"{name!r} is outside the directory of the script; move it there")
            if not path.is_file():
                raise FileError(f"{name!r} does not exist in {self._directory}")
            if path.stat().st_size > MAX_BYTES:
                raise FileError(f"{name!r} is larger than {MAX_BYTES // 2**20} MiB")
            return path.read_bytes().decode()
        except UnicodeDecodeError:
            raise FileError(f"{name!r} is not UTF-8 text") from None
        except (OSError, ValueError) as error:
            raise FileError(f"{name!r} cannot be read: {error}") from None
