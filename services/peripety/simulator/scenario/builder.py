"""Script builder: scripts in Python, with the field names of script files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from peripety.simulator.scenario.load import document_to_scenario

if TYPE_CHECKING:
    from peripety.simulator.scenario.model import Scenario

__all__ = ["ScenarioBuilder"]

_OF_PATTERNS = frozenset({"ignore_case", "model", "tool_result", "message_index"})

Response = str | Mapping[str, Any] | None
"""An answer as in a file: a text or a table; None if only a `failure` is given."""


class ScenarioBuilder:
    """Fluent builder of a script, rule by rule.

    Values are those of a script file (text, numbers, dicts, lists), with the same meaning:

        ScenarioBuilder()
            .respond_to("login", "Username?", max_matches=1)
            .then("Password?")
            .then(failure={"type": "auth_error"})
            .default_response("Say login.")
            .build()

    Args:
        fields: fields of the script itself, such as `seed`, `limits` or `pace`.
    """

    def __init__(self, **fields: Any) -> None:
        self._rules: list[dict[str, Any]] = []
        self._document: dict[str, Any] = {**fields, "responses": self._rules}

    def respond_to(self, text: str, response: Response = None, **options: Any) -> Self:
        """Answer prompts that contain a text.

        Args:
            text: the text to find.
            response: the answer.
            options: other fields of the pattern (`model`, `tool_result`, `message_index`, `ignore_case`) and
                of the rule (`failure`, `max_matches`, `turns`, `name`).
        """
        return self._rule({"type": "contains", "text": text}, response, options)

    def respond_to_exact(self, text: str, response: Response = None, **options: Any) -> Self:
        """Answer prompts that equal a text. See `respond_to`."""
        return self._rule({"type": "exact", "text": text}, response, options)

    def respond_to_regex(self, pattern: str, response: Response = None, **options: Any) -> Self:
        """Answer prompts in which a regular expression is found. See `respond_to`."""
        return self._rule({"type": "regex", "pattern": pattern}, response, options)

    def respond_to_glob(self, pattern: str, response: Response = None, **options: Any) -> Self:
        """Answer prompts that match a glob. See `respond_to`."""
        return self._rule({"type": "glob", "pattern": pattern}, response, options)

    def respond_to_any(self, response: Response = None, **options: Any) -> Self:
        """Answer any prompt. See `respond_to`."""
        return self._rule({"type": "any"}, response, options)

    def turn(self, expect: str | Mapping[str, Any], response: Response = None, **options: Any) -> Self:
        """Add a turn to the latest rule.

        Args:
            expect: the text that the next prompt must contain, or a pattern.
            response: the answer.
            options: other fields of the turn (`failure`).

        Raises:
            ValueError: no rule was added yet.
        """
        if not self._rules:
            raise ValueError("a turn follows a rule: call respond_to first")
        pattern = {"type": "contains", "text": expect} if isinstance(expect, str) else expect
        turn = {"expect": pattern, **_step(response), **options}
        self._rules[-1].setdefault("turns", []).append(turn)
        return self

    def then(self, response: Response = None, **options: Any) -> Self:
        """Add a turn for any prompt to the latest rule. See `turn`."""
        return self.turn({"type": "any"}, response, **options)

    def default_response(self, response: str | Mapping[str, Any]) -> Self:
        """Set the answer for prompts that no rule matches."""
        self._document["default_response"] = response
        return self

    def build(self) -> Scenario:
        """Build the script.

        Raises:
            ScenarioError: a field is not valid; the message names it as in a file.
        """
        return document_to_scenario(self._document)

    def _rule(self, pattern: dict[str, Any], response: Response, options: dict[str, Any]) -> Self:
        own = {name: options.pop(name) for name in _OF_PATTERNS & options.keys()}
        turns = [*options.pop("turns", ())]
        self._rules.append({"pattern": {**pattern, **own}, **_step(response), **options, "turns": turns})
        return self


def _step(response: Response) -> dict[str, Any]:
    return {} if response is None else {"response": response}
