"""Detection of files that may hold secrets; only their names are disclosed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["is_secret"]

_NAMES = re.compile(
    r"""
      .*\.env(\..*)? | .*\.(pem|key|p12|pfx|jks|keystore|kdbx|gpg|asc|ovpn)
    | id_(rsa|dsa|ecdsa|ed25519)(\..*)? | \.?(netrc|pgpass|htpasswd|npmrc|pypirc|git-credentials)
    | .*(secret|credential|password|passwd|token|apikey|api_key|private).*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SOURCES = frozenset(
    {".py", ".js", ".ts", ".go", ".rs", ".java", ".c", ".cc", ".cpp", ".h", ".rb", ".r", ".md"}
)


def is_secret(path: Path) -> bool:
    """Return True if a file may hold secrets, by its name and folders; source code does not count.

    Args:
        path: its path in the directory.
    """
    is_named = any(map(_NAMES.fullmatch, path.parts))
    return is_named and (path.suffix.lower() not in _SOURCES or path.name.startswith(".env"))
