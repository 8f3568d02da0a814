"""The files that a scenario refers to: `{"$file": "relative/path"}` stands for what is in the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.scenario.documents import DocumentError, parse_json

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MAX_BYTES", "FileError", "Files"]

MAX_BYTES = 16 * 2**20


class FileError(Exception):
    """A file that cannot be had; the message says why and what to do."""


class Files:
    """The files of one directory and of those below it; each is read once.

    Args:
        directory: where paths begin, and what they do not leave; None where there are no files.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory and directory.resolve()
        self._texts: dict[str, str] = {}

    def value(self, name: str) -> Any:
        """What is in a file: the value of a `.json`, the text of any other.

        Raises:
            FileError: it cannot be had.
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
        """The text of a file.

        Raises:
            FileError: it cannot be had.
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
