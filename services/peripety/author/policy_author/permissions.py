"""Permission sentences: limits of one tool in English, in words that the reader follows exactly.

A sentence is tried and read back. It is returned only if the reader makes one rule of it, with the intended
condition and nothing else; so a wording that means more, or less, is never used.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.author.policy_author.rules import build_rules
from peripety.author.policy_author.vocabulary import DescribedTool, Test, merge_conditions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


MOST_LISTED_VALUES = 3
"""The maximum number of values in a sentence; more values are a list of the policy, or other sentences."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class CallLimit:
    """CallLimit of a call.

    Attributes:
        tests: the tests, all of which hold.
        is_negated: True if the only test must not hold.
    """

    tests: tuple[Test, ...]
    is_negated: bool = False

    def to_conditions(self) -> list[dict[str, Any]]:
        """Return the members of `when` of a rule that allows calls."""
        return [test.to_condition(is_negated=self.is_negated, is_stopping=False) for test in self.tests]


class PermissionWriter:
    """Writer of permissions about some tools.

    Args:
        tools: all tools of the policy, as in a policy document.
        lists: the value kind of each list that a limit references as `@name`.
    """

    def __init__(self, tools: Sequence[Mapping[str, Any]], lists: Mapping[str, str]) -> None:
        self._documents = tools
        self._lists = lists

    def write(self, tool: DescribedTool, limits: Sequence[CallLimit]) -> str | CallLimit | None:
        """Return a sentence that allows exactly the calls of a tool within limits.

        Args:
            tool: the tool.
            limits: the limits, which must all hold.

        Returns:
            The sentence; the first limit that no wording expresses; or None if only all of them together have
            no wording.
        """
        place = f" on the server `{tool.server}`" if self._is_shared(tool) else ""
        phrases: list[str] = []
        for limit in limits:
            wording = next(
                (
                    one
                    for one in _iter_wordings(limit, tool)
                    if self._means(f"`{tool.name}` is allowed {one}{place}.", tool, [limit])
                ),
                None,
            )
            if wording is None:
                return limit
            phrases.append(wording)
        sentence = f"{' '.join([f'`{tool.name}` is allowed', *phrases])}{place}."
        return sentence if self._means(sentence, tool, limits) else None

    def _is_shared(self, tool: DescribedTool) -> bool:
        return [one["tool_name"] for one in self._documents].count(tool.name) > 1

    def _means(self, sentence: str, tool: DescribedTool, limits: Sequence[CallLimit]) -> bool:
        """Return True if the reader makes exactly one rule of a sentence: an allowance within the limits."""
        read = build_rules(sentence, self._documents, self._lists)
        if read.unfollowed or len(read.rules) != 1:
            return False
        (rule,) = read.rules
        conditions = [one for limit in limits for one in limit.to_conditions()]
        intended = {"servers": [tool.server], "tools": [tool.name], **merge_conditions(conditions)}
        return bool(rule["then"] == "allow") and _is_same(rule["when"], intended)


def _is_same(when: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return _normalize(when) == _normalize(other)


def _normalize(when: Mapping[str, Any]) -> dict[str, Any]:
    """Return a condition with its conjuncts in a normal order."""
    matchers = [{**one, "among": sorted(one["among"])} for one in when.get("arguments", ())]
    logic = (
        {json.dumps(one, sort_keys=True) for one in _conjuncts(when["logic"])} if "logic" in when else set()
    )
    return {
        **when,
        "arguments": sorted(json.dumps(one, sort_keys=True) for one in matchers),
        "logic": sorted(logic),
    }


def _conjuncts(logic: Any) -> Iterator[Any]:
    if isinstance(logic, dict) and [*logic] == ["and"]:
        for part in logic["and"]:
            yield from _conjuncts(part)
    else:
        yield logic


def _iter_wordings(limit: CallLimit, tool: DescribedTool) -> Iterator[str]:
    """Yield phrases that may mean a limit, the plainest first."""
    test = limit.tests[0]
    match test.subject:
        case "roles":
            yield f"by callers with the role `{test.values[0]}`"
        case "matcher":
            values = _join_values(test.values)
            arguments = [one for one in tool.arguments if one.role in test.names]
            # The name of one argument would hide that the others have the same role.
            names = [_to_words(one.name) for one in arguments] if len(arguments) == 1 else []
            nouns = [*names, *map(_to_words, test.names)]
            for noun in filter(None, dict.fromkeys(nouns)):
                yield f"with the {noun} {values}"
            yield from (f"{word} {values}" for word in ("to", "from", "at"))
        case "presence" | "choice" if test.subject == "presence" or test.values == (True,):
            word = "without" if limit.is_negated else "with"
            yield f"{word} {'-'.join(_to_words(test.names[0]).split())}"
        case _:
            for noun in _nouns(test.names[0]):
                yield f"with the {noun} {_join_numbers(limit) if test.bound else _join_values(test.values)}"


def _nouns(name: str) -> tuple[str, ...]:
    words = _to_words(name).split()
    return tuple(dict.fromkeys([" ".join(words), "-".join(words)]))


def _to_words(name: str) -> str:
    """Return the words of a name in lower case, with spaces between them."""
    return " ".join(_WORD.findall(name)).lower()


def _join_values(values: Sequence[Any]) -> str:
    """Return values as a list in English: "`a`, `b` or `c`"; numbers and names of lists have no marks."""
    shown = [_quote(one) if isinstance(one, str) else _to_digits(one) for one in values]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _quote(text: str) -> str:
    return text if text.startswith("@") else f"`{text}`"


def _join_numbers(limit: CallLimit) -> str:
    least, most = (_to_digits(test.bound.number) for test in limit.tests if test.bound)
    return f"between {least} and {most}"


def _to_digits(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:.{_MOST_DIGITS}f}".rstrip("0").rstrip(".")
