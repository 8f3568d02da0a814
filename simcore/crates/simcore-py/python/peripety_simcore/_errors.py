"""The error that the native code raises."""

from __future__ import annotations


class SimcoreError(Exception):
    """An operation that the engine refused.

    Attributes:
        code: stable UPPER_SNAKE reason.
        message: one sentence.
        path: where: a JSON Pointer, or empty.
    """

    def __init__(self, code: str, message: str, path: str) -> None:
        super().__init__(code, message, path)
        self.code = code
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"
