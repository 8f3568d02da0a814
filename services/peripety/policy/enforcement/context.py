"""Context of calls: what an enforcement point knows beside a call, computed from what passed through it.

A policy declares its context by name: rates, times, the user who started the point, and the provenance of
arguments. Context that holds becomes a role of the call, `context.NAME`, so rules and their analysis need
nothing else. Context that is not supplied never holds, and rules with `allow` are the only ones that may
require it; so missing context makes a decision stricter.

Beside the policy, an enforcement point may have limits for all its calls: a rate, and a circuit breaker.
"""

from __future__ import annotations

import os
import pwd
import re
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from peripety.engine.policies.types import CONTEXT_PREFIX
from peripety.engine.schema_validation import parse_pointer
from peripety.errors import FailedPreconditionError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.engine import Policy, ToolRequest


_MAX_SECONDS = 604_800
_MAX_CALLS = 100_000
_MAX_TEXT = 16 * 1024 * 1024
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
FORWARDED_OUTCOMES = frozenset({"forwarded", "approved", "shadowed"})
"""Outcomes in a decision log of calls that went to their tool, so that they count for rates."""


def process_owner() -> str:
    """Return the name of the user of this process, from the system and not from the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


class SourceTexts:
    """Texts of one source, the newest up to a total size. A dropped text only makes decisions stricter."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque()
        self._size = 0

    def add(self, text: str) -> None:
        """Add a text."""
        self._texts.append(text.casefold())
        self._size += len(text)
        while self._size > _MAX_TEXT:
            self._size -= len(self._texts.popleft())

    def contain(self, value: str) -> bool:
        """Return True if a text contains a value as a whole word, address or path, in any case."""
        found = value.casefold().strip()
        if not found:
            return False
        # A part of a longer address, host or path is another value.
        whole = re.compile(rf"(?<![\w@./+\-]){re.escape(found)}(?![\w@/+\-]|\.\w)")
        return any(found in text and whole.search(text) for text in self._texts)


class CallContext:
    """Context of the calls of one enforcement point.

    Args:
        now: returns seconds since 1970.
        starter: name of the user who started the enforcement point.
        hears_user: True if the words of the user pass through this enforcement point.
    """

    def __init__(self, now: Callable[[], float], starter: str, *, hears_user: bool = False) -> None:
        self._now = now
        self._starter = starter
        self._hears_user = hears_user
        self._user = SourceTexts()
        self._results: dict[tuple[str, str], SourceTexts] = {}
        self._forwarded: deque[tuple[float, str, str]] = deque(maxlen=_MAX_CALLS)

    def hear_user(self, text: str) -> None:
        """Add words of the user."""
        self._user.add(text)

    def read_result(self, server_name: str, tool_name: str, text: str) -> None:
        """Add the result of a tool."""
        self._results.setdefault((server_name, tool_name), SourceTexts()).add(text)

    def count(self, request: ToolRequest) -> None:
        """Count a call that goes to its tool."""
        self._forwarded.append((self._now(), request.server_name, request.tool_name))

    def restore(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Count the calls of a decision log, so that a restart does not reset rates."""
        since = self._now() - _MAX_SECONDS
        for entry in entries:
            if entry["outcome"] in FORWARDED_OUTCOMES and entry["time"] >= since:
                self._forwarded.append((entry["time"], entry["server_name"], entry["tool_name"]))

    def require_supplied(self, policy: Policy) -> None:
        """Raise unless this enforcement point can supply all context that a policy declares.

        Raises:
            FailedPreconditionError: `CONTEXT_MISSING`; the message names the context.
        """
        for name, declared in policy.spec.get("context", {}).items():
            if declared["kind"] == "provenance" and declared.get("user") and not self._hears_user:
                raise FailedPreconditionError(
                    f"context.{name}: the words of the user do not pass through this enforcement point;"
                    " take user out of the declaration",
                    code="CONTEXT_MISSING",
                )

    def holding(self, policy: Policy, request: ToolRequest) -> tuple[str, ...]:
        """Return the roles of the declared context that holds for a call.

        Raises:
            InvalidArgumentError: a role of the caller has the prefix of context.
            FailedPreconditionError: as `require_supplied`.
        """
        if any(role.startswith(CONTEXT_PREFIX) for role in request.roles):
            raise InvalidArgumentError(f"roles of a caller must not begin with {CONTEXT_PREFIX}")
        self.require_supplied(policy)
        return tuple(
            f"{CONTEXT_PREFIX}{name}"
            for name, declared in policy.spec.get("context", {}).items()
            if self._holds(declared, policy, request)
        )

    def _holds(self, declared: Mapping[str, Any], policy: Policy, request: ToolRequest) -> bool:
        match declared["kind"]:
            case "rate":
                count = self._count_since(declared["seconds"], declared.get("tools"))
                return count < int(declared["calls"])
            case "time":
                return _is_within(declared, self._now())
            case "starter":
                return self._starter in [*declared["users"]]
            case _:
                return self._is_from_sources(declared, policy, request)

    def _count_since(self, seconds: int, tools: Sequence[str] | None) -> int:
        since = self._now() - seconds
        count = 0
        for time, _, tool in reversed(self._forwarded):
            if time <= since:
                return count
            count += tools is None or tool in tools
        # Older calls may have been dropped from a full list: then no rate holds.
        return count if len(self._forwarded) < _MAX_CALLS else _MAX_CALLS

    def _is_from_sources(self, declared: Mapping[str, Any], policy: Policy, request: ToolRequest) -> bool:
        sources = [self._user] if declared.get("user") else []
        sources += [texts for (_, tool), texts in self._results.items() if tool in declared.get("tools", ())]
        values = [*_find_values(policy, request, frozenset(declared["argument_roles"]))]
        return bool(values) and all(
            isinstance(value, str) and any(source.contain(value) for source in sources) for value in values
        )


def _find_values(policy: Policy, request: ToolRequest, roles: frozenset[str]) -> Iterator[Any]:
    """Yield the values of the arguments with one of the roles; elements of arrays one by one."""
    for tool in policy.spec["tools"]:
        if (tool["server_name"], tool["tool_name"]) != (request.server_name, request.tool_name):
            continue
        for argument in tool.get("argument_roles", ()):
            if argument["role"] in roles:
                value = _look_up(request.arguments, parse_pointer(argument["path"]))
                yield from value if isinstance(value, list) else () if value is None else (value,)


def _look_up(value: Any, segments: Sequence[str]) -> Any:
    for segment in segments:
        if isinstance(value, dict):
            value = value.get(segment)
        elif isinstance(value, list) and segment.isdecimal() and int(segment) < len(value):
            value = value[int(segment)]
        else:
            return None
    return value


def _is_within(declared: Mapping[str, Any], now: float) -> bool:
    """Return True if a time is within the declared days and hours; hours may span midnight."""
    local = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(declared.get("zone", "UTC")))
    clock = f"{local:%H:%M}"
    start, end = declared.get("start", "00:00"), declared.get("end", "24:00")
    is_in_hours = start <= clock < end if start < end else clock >= start or clock < end
    return is_in_hours and _DAYS[local.weekday()] in declared.get("days", _DAYS)


@dataclass(frozen=True, slots=True)
class Limit:
    """A number of events in a sliding time.

    Attributes:
        count: the maximum number of events.
        seconds: the time.
    """

    count: int
    seconds: float

    def __str__(self) -> str:
        """Return the limit in words."""
        return f"{self.count} in {self.seconds:g} s"


class CallLimits:
    """Rate and circuit breaker of all calls of an enforcement point.

    Args:
        now: returns seconds since 1970.
        rate: the maximum number of forwarded calls; None for no limit.
        breaker: the number of refused calls that closes all tools, until its time has passed; None for none.
            An agent whose calls are refused again and again is confused or attacked.
    """

    def __init__(
        self, now: Callable[[], float], rate: Limit | None = None, breaker: Limit | None = None
    ) -> None:
        self._now = now
        self._rate = rate
        self._breaker = breaker
        self._forwarded: deque[float] = deque()
        self._refused: deque[float] = deque()
        self._open_until = 0.0

    def find_closure(self) -> str | None:
        """Return the reason why no call may be forwarded now; None if a call may be."""
        now = self._now()
        if now < self._open_until:
            return (
                f"the circuit breaker is open: more than {self._breaker} were refused;"
                f" all tools are closed for {self._open_until - now:,.0f} s"
            )
        if (
            self._rate is not None
            and _count_recent(self._forwarded, now - self._rate.seconds) >= self._rate.count
        ):
            return f"the rate is used up: at most {self._rate}"
        return None

    def count_forwarded(self) -> None:
        """Count a call that goes to its tool."""
        if self._rate is not None:
            self._forwarded.append(self._now())

    def count_refused(self) -> None:
        """Count a call that the policy or a person refused, and open the breaker if there were too many."""
        if self._breaker is None:
            return
        now = self._now()
        self._refused.append(now)
        if _count_recent(self._refused, now - self._breaker.seconds) > self._breaker.count:
            self._refused.clear()
            self._open_until = now + self._breaker.seconds


def _count_recent(times: deque[float], since: float) -> int:
    """Drop the times up to `since`, and return the number of the others."""
    while times and times[0] <= since:
        times.popleft()
    return len(times)
