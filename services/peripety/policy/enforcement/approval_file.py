"""File with the addresses and the token of the approvals of an enforcement point.

Only its owner can read the file. So the guarded agent, which sees only the tools, cannot approve its own
calls.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Self

from peripety.errors import FailedPreconditionError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ApprovalFile:
    """Content of the file.

    Attributes:
        url: base URL of the approvals over HTTP.
        address: `host:port` of ApprovalService.
        token: the token of each request.
        process: id of the process that serves them.
    """

    url: str
    address: str
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    process: int = field(default_factory=os.getpid)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file.

        Raises:
            NotFoundError: `APPROVAL_NOT_FOUND`; no enforcement point runs with this file.
        """
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            raise NotFoundError(
                f"no enforcement point runs with {path}; start `peripety policy proxy`, or use its"
                " --approvals",
                code="APPROVAL_NOT_FOUND",
            ) from None

    @contextmanager
    def written(self, path: Path) -> Iterator[None]:
        """Write the file for its owner only, and remove it at the end.

        A file of a process that has ended is replaced.

        Raises:
            FailedPreconditionError: the file exists or cannot be written.
        """
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remove_if_abandoned(path)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump(asdict(self), stream)
        except OSError as error:
            raise FailedPreconditionError(
                f"cannot write {path}: {error.strerror}; remove it if its process has ended, or name another"
                " file with --approvals"
            ) from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _remove_if_abandoned(path: Path) -> None:
    with suppress(NotFoundError):
        process = ApprovalFile.read(path).process
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            path.unlink(missing_ok=True)
        except (PermissionError, OverflowError):
            return
