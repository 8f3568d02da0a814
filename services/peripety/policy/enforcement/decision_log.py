"""Decision log: one JSON line for each decided call, chained by hashes, and its replay against other rules.

Each line contains the hash of the line before, so a removed or changed line is found. Values of arguments
with a redacted role or name do not reach the log; the hash of the whole call still identifies it.
"""

from __future__ import annotations

import hashlib
import json
import os
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.engine import ToolRequest, canonicalize
from peripety.engine.schema_validation import format_pointer, parse_pointer
from peripety.errors import FailedPreconditionError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from peripety.engine import DecisionResult, Policy


REDACTED = "[redacted]"
"""Value in the log of an argument with a redacted role."""
_FIRST = "0" * 64


def call_hash(request: ToolRequest) -> str:
    """Return the SHA-256 in hex that identifies a call: its server, tool, arguments and roles."""
    parts = [request.server_name, request.tool_name, request.arguments, [*request.roles]]
    return hashlib.sha256(canonicalize(parts)).hexdigest()


class DecisionLog:
    """The log of one enforcement point. A new process continues the chain of the file.

    Args:
        path: the file; it is created with access for its owner only.
        redacted: roles or names of arguments whose values are left out.

    Attributes:
        details: further members of each line from now on.

    Raises:
        FailedPreconditionError: the file cannot be written, or its chain is broken.
    """

    def __init__(self, path: Path, redacted: Iterable[str] = ()) -> None:
        self.details: dict[str, Any] = {}
        self._redacted = frozenset(redacted)
        try:
            entries = [*read_log(path)] if path.exists() else []
            self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")
        except OSError as error:
            raise FailedPreconditionError(f"cannot write {path}: {error.strerror}") from None
        except InvalidArgumentError as error:
            raise FailedPreconditionError(f"{error.message}; move the file away to start a new one") from None
        self._previous: str = entries[-1]["hash"] if entries else _FIRST
        self._sequence = len(entries)
        self._restored = tuple(entries)

    def take_restored(self) -> tuple[dict[str, Any], ...]:
        """Return the lines that the file had at the start, once."""
        restored, self._restored = self._restored, ()
        return restored

    def append(
        self,
        request: ToolRequest,
        policy: Policy,
        decided: DecisionResult,
        outcome: str,
        time: float,
        **details: Any,
    ) -> None:
        """Write a decision to the disk.

        Args:
            request: the call.
            policy: the policy that decided.
            decided: the decision.
            outcome: `forwarded`, `refused` or another word for the effect.
            time: seconds since 1970.
            **details: further members of the line.

        Raises:
            OSError: the line cannot be written.
        """
        entry = {
            "sequence": self._sequence + 1,
            "time": round(time, 3),
            "server_name": request.server_name,
            "tool_name": request.tool_name,
            "arguments": self._redact(request, policy),
            "roles": [*request.roles],
            "call_hash": call_hash(request),
            "decision": decided.decision.value,
            "rule_id": decided.rule_id,
            "reasons": [*decided.reasons],
            "policy_hash": hashlib.sha256(policy.document).hexdigest(),
            "outcome": outcome,
            **self.details,
            **details,
            "previous": self._previous,
        }
        entry["hash"] = _hash_entry(entry)
        self._file.write(json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._previous, self._sequence = entry["hash"], entry["sequence"]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def find_redacted_paths(self, request: ToolRequest, policy: Policy) -> tuple[str, ...]:
        """Return the JSON Pointers of the arguments of a call whose values are left out."""
        named = (format_pointer((name,)) for name in self._redacted & request.arguments.keys())
        roles = (
            role
            for tool in policy.spec["tools"]
            if (tool["server_name"], tool["tool_name"]) == (request.server_name, request.tool_name)
            for role in tool.get("argument_roles", ())
        )
        return tuple(sorted({*named, *(role["path"] for role in roles if role["role"] in self._redacted)}))

    def _redact(self, request: ToolRequest, policy: Policy) -> Any:
        arguments = deepcopy({**request.arguments})
        for path in self.find_redacted_paths(request, policy):
            _replace_at(arguments, parse_pointer(path))
        return arguments


def _replace_at(arguments: Any, segments: Sequence[str]) -> None:
    """Replace the value at a path, if there is one."""
    *outer, last = segments
    inner = arguments
    for segment in outer:
        inner = inner.get(segment) if isinstance(inner, dict) else None
    if isinstance(inner, dict) and last in inner:
        inner[last] = REDACTED


def _hash_entry(entry: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonicalize({key: entry[key] for key in entry if key != "hash"})).hexdigest()


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log after a check of their chain.

    Raises:
        InvalidArgumentError: `FILE_INVALID`; it is not a decision log.
        InvalidArgumentError: `LOG_BROKEN`; a line was changed or removed.
        OSError: the file cannot be read.
    """
    previous = _FIRST
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                entry = json.loads(line)
                is_sound = entry["previous"] == previous and entry["hash"] == _hash_entry(entry)
            except (ValueError, KeyError, TypeError):
                if number == 1:
                    raise InvalidArgumentError(
                        f"{path} is not a decision log, as `peripety policy proxy --log` writes it",
                        code="FILE_INVALID",
                    ) from None
                is_sound = False
            if not is_sound:
                raise InvalidArgumentError(
                    f"{path}: line {number} was changed, or a line before it is missing", code="LOG_BROKEN"
                )
            previous = entry["hash"]
            yield entry


@dataclass(frozen=True, slots=True)
class ReplayedDecision:
    """A call of a log that other rules decide differently.

    Attributes:
        sequence: the number of the line.
        request: the call, as it is in the log.
        before: the decision in the log.
        after: the other decision.
        is_redacted: True if values are missing from the log, so that the other decision is uncertain.
    """

    sequence: int
    request: ToolRequest
    before: str
    after: DecisionResult
    is_redacted: bool


def replay_log(policy: Policy, entries: Iterable[Mapping[str, Any]]) -> Iterator[ReplayedDecision]:
    """Yield the calls of a log that a policy decides differently.

    Args:
        policy: the policy.
        entries: the lines of the log.
    """
    for entry in entries:
        request = ToolRequest(
            entry["server_name"], entry["tool_name"], entry["arguments"], tuple(entry["roles"])
        )
        # The context of that time, so that a rate is not counted again.
        decided = policy.decide(replace(request, roles=(*request.roles, *entry.get("context", ()))))
        if decided.decision.value != entry["decision"]:
            is_redacted = call_hash(request) != entry["call_hash"]
            yield ReplayedDecision(entry["sequence"], request, entry["decision"], decided, is_redacted)
