"""Context of calls: what an enforcement point knows beside a call, computed from what passed through it.

A policy declares its context by name: rates, times, the user who started the point, the provenance of
arguments, results of earlier calls, and the newest words of the user. Context that holds becomes a role of
the call, `context.NAME`, so rules and their analysis need nothing else. Context that is not supplied never
holds, and rules with `allow` are the only ones that may require it; so missing context makes a decision
stricter.

Beside the policy, an enforcement point may have limits for all its calls: a rate, and a circuit breaker.
"""

from __future__ import annotations

import json
import os
import pwd
import re
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from peripety.engine import ToolRequest, evaluate
from peripety.engine.policies.rule_checks import find_placeholder
from peripety.engine.policies.types import CONTEXT_PREFIX
from peripety.engine.schema_validation import parse_pointer
from peripety.errors import FailedPreconditionError, InvalidArgumentError, PeripetyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.engine import Policy


_MAX_SECONDS = 604_800
_MAX_CALLS = 100_000
_MAX_TEXT = 16 * 1024 * 1024
_MAX_COUNTED_ARGUMENTS = 1024
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
FORWARDED_OUTCOMES = frozenset({"forwarded", "approved", "shadowed"})
"""Outcomes in a decision log of calls that went to their tool, so that they count for rates."""


def process_owner() -> str:
    """Return the name of the user of this process, from the system and not from the environment."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


@dataclass(frozen=True, slots=True)
class SourceText:
    """Words of the user, or the result of a call.

    Attributes:
        text: the text.
        request: the call; None for words of the user.
        number: its place in the order of results.
        folded: the text for comparisons in any case.
    """

    text: str
    request: ToolRequest | None
    number: int
    folded: str

    def contains(self, value: str) -> bool:
        """Return True if it contains a value as a whole word, address or path, in any case."""
        found = value.casefold().strip()
        # A part of a longer address, host or path is another value.
        whole = rf"(?<![\w@./+\-]){re.escape(found)}(?![\w@/+\-]|\.\w)"
        return bool(found) and found in self.folded and re.search(whole, self.folded) is not None


class SourceTexts:
    """Texts of one source, the newest up to a total size. A dropped text only makes decisions stricter."""

    def __init__(self) -> None:
        self._texts: deque[SourceText] = deque()
        self._size = 0

    def __iter__(self) -> Iterator[SourceText]:
        """Iterate over the texts, oldest first."""
        return iter(self._texts)

    def add(self, text: str, request: ToolRequest | None = None, number: int = 0) -> None:
        """Add a text."""
        self._texts.append(SourceText(text, request, number, text.casefold()))
        self._size += len(text)
        while self._size > _MAX_TEXT:
            self._size -= len(self._texts.popleft().text)

    def contain(self, value: str) -> bool:
        """Return True if a text contains a value as a whole word, address or path, in any case."""
        return any(text.contains(value) for text in self._texts)


@dataclass(frozen=True, slots=True)
class _ForwardedCall:
    """Call that went to its tool; without a request if its arguments are long or unknown."""

    time: float
    tool_name: str
    request: ToolRequest | None


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
        self._result_count = 0
        self._latest_words = SourceTexts()
        self._called_since: set[str] = set()
        self._forwarded: deque[_ForwardedCall] = deque(maxlen=_MAX_CALLS)

    def hear_user(self, text: str) -> None:
        """Add words of the user."""
        self._user.add(text)
        self._latest_words = SourceTexts()
        self._latest_words.add(text)
        self._called_since.clear()

    def read_result(self, request: ToolRequest, text: str) -> None:
        """Add the result of a call."""
        self._result_count += 1
        source = self._results.setdefault((request.server_name, request.tool_name), SourceTexts())
        source.add(text, request, self._result_count)

    def count(self, request: ToolRequest) -> None:
        """Count a call that goes to its tool."""
        is_small = len(json.dumps(request.arguments)) <= _MAX_COUNTED_ARGUMENTS
        self._forwarded.append(_ForwardedCall(self._now(), request.tool_name, request if is_small else None))
        self._called_since.add(request.tool_name)

    def restore(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Count the calls of a decision log, so that a restart does not reset rates."""
        since = self._now() - _MAX_SECONDS
        for entry in entries:
            if entry["outcome"] in FORWARDED_OUTCOMES and entry["time"] >= since:
                # Its arguments may be redacted, so it counts for every value.
                self._forwarded.append(_ForwardedCall(entry["time"], entry["tool_name"], None))

    def require_supplied(self, policy: Policy) -> None:
        """Raise unless this enforcement point can supply all context that a policy declares.

        Raises:
            FailedPreconditionError: `CONTEXT_MISSING`; the message names the context.
        """
        for name, declared in policy.spec.get("context", {}).items():
            needs_user = declared["kind"] == "said" or (
                declared["kind"] == "provenance" and declared.get("user")
            )
            if needs_user and not self._hears_user:
                raise FailedPreconditionError(
                    f"context.{name}: the words of the user do not pass through this enforcement point;"
                    " do not declare context that needs them",
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
                return self._count_calls(declared, policy, request) < int(declared["calls"])
            case "time":
                return _is_within(declared, self._now())
            case "starter":
                return self._starter in [*declared["users"]]
            case "results":
                groups = _group_values(policy, request, declared.get("each", ()))
                return bool(groups) and all(
                    self._results_hold(declared, policy, request, values) for values in groups
                )
            case "said":
                is_said = any(map(self._latest_words.contain, declared["words"]))
                return is_said and self._called_since.isdisjoint(declared.get("tools", ()))
            case _:
                return self._is_from_sources(declared, policy, request)

    def _count_calls(self, declared: Mapping[str, Any], policy: Policy, request: ToolRequest) -> int:
        since = self._now() - declared["seconds"]
        tools = declared.get("tools")
        roles = frozenset(declared.get("argument_roles", ()))
        values = [*_find_values(policy, request, roles)]
        count = 0
        for call in reversed(self._forwarded):
            if call.time <= since:
                return count
            count += (tools is None or call.tool_name in tools) and (
                not values
                or call.request is None
                or any(value in values for value in _find_values(policy, call.request, roles))
            )
        # Older calls may have been dropped from a full list: then no rate holds.
        return count if len(self._forwarded) < _MAX_CALLS else _MAX_CALLS

    def _results_hold(
        self, declared: Mapping[str, Any], policy: Policy, request: ToolRequest, values: Mapping[str, Any]
    ) -> bool:
        """Return True if each declared result was read, and the expression over them holds."""
        found: dict[str, Any] = {}
        for name, wanted in declared["results"].items():
            text = self._find_result(wanted, policy, values)
            part = None if text is None else _read_part(text, wanted.get("path", ""), values)
            if part is None:
                return False
            found[name] = part
        data = {"arguments": request.arguments, "values": values, "results": found}
        try:
            return evaluate({"!!": [declared.get("logic", True)]}, data) is True
        except PeripetyError:
            return False

    def _find_result(
        self, wanted: Mapping[str, Any], policy: Policy, values: Mapping[str, Any]
    ) -> SourceText | None:
        """Return the newest result that fits; a later one of the same call replaces an earlier one."""
        texts = [
            text for (_, tool), source in self._results.items() if tool in wanted["tools"] for text in source
        ]
        replaced: set[str] = set()
        contained = [values.get(role) for role in wanted.get("contains", ())]
        for text in sorted(texts, key=lambda one: one.number, reverse=True):
            if text.request is None:
                continue
            call = json.dumps([text.request.tool_name, text.request.arguments], sort_keys=True)
            if call in replaced:
                continue
            replaced.add(call)
            earlier = _values_by_role(policy, text.request)
            same = wanted.get("argument_roles", ())
            if not all(role in values and earlier.get(role) == values[role] for role in same):
                continue
            if all(_contains_each(text, value) for value in contained):
                return text
            if same:
                return None
        return None

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


def _values_by_role(policy: Policy, request: ToolRequest) -> dict[str, Any]:
    """Return the values of each role: one value as it is, several as a list."""
    found: dict[str, Any] = {}
    for tool in policy.spec["tools"]:
        if (tool["server_name"], tool["tool_name"]) == (request.server_name, request.tool_name):
            for role in {argument["role"] for argument in tool.get("argument_roles", ())}:
                values = [*_find_values(policy, request, frozenset({role}))]
                if values:
                    found[role] = values[0] if len(values) == 1 else values
    return found


def _group_values(policy: Policy, request: ToolRequest, each: Sequence[str]) -> list[dict[str, Any]]:
    """Return the values of each role, once for each value of the roles in `each`.

    The list is empty if these roles have different numbers of values.
    """
    values = _values_by_role(policy, request)
    if not each:
        return [values]
    columns = [_to_list(values.get(role)) for role in each]
    if len({len(column) for column in columns}) > 1:
        return []
    return [{**values, **dict(zip(each, row, strict=True))} for row in zip(*columns, strict=True)]


def _contains_each(text: SourceText, value: Any) -> bool:
    values = _to_list(value)
    return bool(values) and all(isinstance(one, str) and text.contains(one) for one in values)


def _to_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _read_part(text: SourceText, path: str, values: Mapping[str, Any]) -> Any:
    """Return the part of a result at a path, or None without it. A result that is not JSON is a text."""
    try:
        result = json.loads(text.text)
    except (ValueError, RecursionError):
        result = text.text
    segments: list[str] = []
    for segment in parse_pointer(path):
        role = find_placeholder(segment)
        value = segment if role is None else values.get(role)
        if not isinstance(value, str):
            return None
        segments.append(value)
    return _look_up(result, segments)


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
