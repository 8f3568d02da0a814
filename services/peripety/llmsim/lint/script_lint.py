"""Script linter: rules that can never answer, sequences that can stall, and near misses of a prompt.

Every flaw comes with prompts that show it. The linter replays these prompts before it reports the flaw.
Flaws that cannot be decided within the budget are not reported.

Near misses are the rules closest to a prompt that no rule matches, each with the failed predicates and an
example that would match.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from peripety.engine.patterns.predicates import compile_predicate
from peripety.engine.patterns.syntax import MatchSubject, Pattern, TextKind, fold
from peripety.errors import Severity
from peripety.llmsim.lint.reachability import UndecidedError, find_prompt
from peripety.llmsim.script_engine import RuleMatch, ScriptEngine, ScriptPosition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.engine.patterns.syntax import TextPattern
    from peripety.llmsim.script.types import Script, ScriptRule


MAX_REPETITIONS = 20
"""Maximum number of repetitions of a prompt until earlier rules reach their limits."""

_ANY_PROMPT = Pattern()


class FlawCode(StrEnum):
    """Kinds of flaws."""

    SHADOWED_RULE = "shadowed_rule"
    UNREACHABLE_TURN = "unreachable_turn"
    DEAD_MAX_MATCHES = "dead_max_matches"
    STALLING_SEQUENCE = "stalling_sequence"


_SEVERITY_BY_CODE = {FlawCode.STALLING_SEQUENCE: Severity.WARNING}


@dataclass(frozen=True, slots=True)
class Flaw:
    """A flaw of a script.

    Attributes:
        code: the kind of flaw.
        place: its location, as a path of the file: `responses[i]` or `responses[i].turns[j]`.
        message: the flaw and its remedy.
        witness: prompts that show the flaw, in the order of one conversation.
        answers: what answers each of them: the place of a rule or a turn, `default_response`, or None.
    """

    code: FlawCode
    place: str
    message: str
    witness: tuple[MatchSubject, ...]
    answers: tuple[str | None, ...]

    @property
    def severity(self) -> Severity:
        """Error if something can never happen, warning if something unintended can happen."""
        return _SEVERITY_BY_CODE.get(self.code, Severity.ERROR)

    def to_json(self) -> dict[str, Any]:
        """Return the flaw as a JSON value."""
        return {
            "code": self.code.value,
            "severity": self.severity.value,
            "place": self.place,
            "message": self.message,
            "witness": [
                {
                    "prompt": subject.text,
                    "model": subject.model,
                    "tool_result": subject.tool_result,
                    "message_index": subject.message_index,
                    "answered_by": answer,
                }
                for subject, answer in zip(self.witness, self.answers, strict=True)
            ],
        }


def lint_script(script: Script) -> list[Flaw]:
    """Return the flaws of a script, ordered by place.

    Raises:
        PatternError: a pattern is not valid.
    """
    return list(_Linter(script).flaws())


class _Linter:
    def __init__(self, script: Script) -> None:
        self._script = ScriptEngine(script)
        self._rules = script.responses
        self._has_default = script.default_response is not None
        self._limited = {
            index: rule.max_matches for index, rule in enumerate(self._rules) if rule.max_matches
        }

    def flaws(self) -> Iterator[Flaw]:
        """Yield all flaws, rule by rule."""
        for number, rule in enumerate(self._rules):
            if rule.max_matches == 0:
                yield self._find_dead_limit(number)
                continue
            try:
                entry = self._find_entry(number)
            except UndecidedError:
                continue
            if isinstance(entry, Flaw):
                yield entry
            elif rule.turns and (prompts := self._prompts_to_enter(number, entry)):
                yield from self._sequence_flaws(number, rule, prompts)

    # ---- rules

    def _find_dead_limit(self, number: int) -> Flaw:
        place = _location(RuleMatch(number))
        message = "max_matches is 0, so the rule never answers; remove max_matches or the rule"
        try:
            witness = find_prompt(self._rules[number].pattern, ())
        except UndecidedError:
            witness = None
        shown = () if witness is None else (witness,)
        return Flaw(FlawCode.DEAD_MAX_MATCHES, place, message, shown, self._answer_prompts(shown))

    def _find_entry(self, number: int) -> MatchSubject | Flaw:
        """Return a prompt that enters a rule once limited rules are used up, or the flaw."""
        rule = self._rules[number]
        before: list[int] = []
        shown: MatchSubject | None = None
        while True:
            subject = find_prompt(rule.pattern, [self._rules[other].pattern for other in before])
            if subject is None:
                return self._shadowed_flaw(number, before, shown)
            answer = self._match_with_limits_used(subject, number)
            if answer == RuleMatch(number):
                return subject
            if answer is None or answer.rule > number or answer.rule in before:
                raise UndecidedError
            shown = shown or subject
            before.append(answer.rule)

    def _shadowed_flaw(self, number: int, before: list[int], shown: MatchSubject | None) -> Flaw:
        place = _location(RuleMatch(number))
        if shown is None:
            message = "the pattern matches no prompt; correct the pattern or remove the rule"
            return Flaw(FlawCode.SHADOWED_RULE, place, message, (), ())
        others = " and ".join(_location(RuleMatch(other)) for other in sorted(before))
        answer = "answers" if len(before) == 1 else "answer"
        message = f"{others} {answer} everything that the rule matches; move the rule up or remove it"
        return Flaw(FlawCode.SHADOWED_RULE, place, message, (shown,), self._answer_prompts((shown,)))

    # ---- sequences

    def _prompts_to_enter(self, number: int, entry: MatchSubject) -> list[MatchSubject] | None:
        """Return a prompt, repeated until earlier rules reach their limits and its own rule answers."""
        for times in range(1, MAX_REPETITIONS + 1):
            prompts = [entry] * times
            if self._match_prompts(prompts)[-1] == RuleMatch(number):
                return prompts
        return None

    def _sequence_flaws(self, number: int, rule: ScriptRule, prompts: list[MatchSubject]) -> Iterator[Flaw]:
        stalls = True
        for at, turn in enumerate(rule.turns):
            position = ScriptPosition(number, at)
            answers = prompts[-1].message_index + 1
            try:
                # The index stays 0 if the caller sends no history.
                subject = find_prompt(turn.expect, (), answers=answers) or find_prompt(turn.expect, ())
                if subject is None:
                    yield self._unreachable_flaw(position, tuple(prompts), last=len(rule.turns) - 1)
                    return
                flaw = self._stalling_flaw(position, tuple(prompts), answers) if stalls else None
            except UndecidedError:
                return
            if flaw is not None:
                stalls = False
                yield flaw
            prompts.append(subject)

    def _unreachable_flaw(
        self,
        position: ScriptPosition,
        prompts: tuple[MatchSubject, ...],
        last: int,
    ) -> Flaw:
        place = _location(RuleMatch(position.rule, position.turn))
        after = "" if position.turn == last else ", nor do the turns after it"
        message = (
            f"no prompt that follows the earlier ones matches expect, so the turn never answers{after}; "
            "correct expect"
        )
        return Flaw(FlawCode.UNREACHABLE_TURN, place, message, prompts, self._answer_prompts(prompts))

    def _stalling_flaw(
        self,
        position: ScriptPosition,
        prompts: tuple[MatchSubject, ...],
        answers: int,
    ) -> Flaw | None:
        """Return the flaw if a prompt can end the sequence at this turn without a way to continue."""
        place = _location(RuleMatch(position.rule, position.turn))
        expect = self._rules[position.rule].turns[position.turn].expect
        unanswered = None if self._has_default else self._find_unanswered_prompt(prompts, expect, answers)
        if unanswered is not None:
            message = (
                "a prompt that the turn does not expect ends the sequence and may get no answer; "
                "add a default_response or a rule for any prompt"
            )
            shown = (*prompts, unanswered)
            return Flaw(FlawCode.STALLING_SEQUENCE, place, message, shown, self._answer_prompts(shown))
        swallowed = self._find_swallowed_prompt(prompts, position.rule, expect, answers)
        if swallowed is not None:
            message = (
                f"an unexpected prompt enters {_location(RuleMatch(position.rule))} again, and the sequence "
                "restarts each time; make the pattern of the rule narrower"
            )
            shown = (*prompts, swallowed)
            return Flaw(FlawCode.STALLING_SEQUENCE, place, message, shown, self._answer_prompts(shown))
        return None

    def _find_unanswered_prompt(
        self,
        prompts: tuple[MatchSubject, ...],
        expect: Pattern,
        answers: int,
    ) -> MatchSubject | None:
        """Return a prompt that a turn does not expect and no other rule answers."""
        avoided = [expect]
        while True:
            subject = find_prompt(_ANY_PROMPT, avoided, answers=answers)
            if subject is None:
                return None
            answer = self._match_prompts((*prompts, subject))[-1]
            if answer is None:
                return subject
            avoided.append(self._pattern(answer, avoided))

    def _find_swallowed_prompt(
        self,
        prompts: tuple[MatchSubject, ...],
        number: int,
        expect: Pattern,
        answers: int,
    ) -> MatchSubject | None:
        """Return an unexpected prompt if every unexpected prompt enters the same rule again."""
        rule = self._rules[number]
        unexpected = find_prompt(_ANY_PROMPT, [expect], answers=answers)
        if rule.max_matches is not None or unexpected is None:
            return None
        ways_out = [find_prompt(_ANY_PROMPT, [expect, rule.pattern], answers=answers)]
        ways_out += [
            find_prompt(other.pattern, [expect], answers=answers)
            for other in self._rules[:number]
            if other.max_matches is None
        ]
        again = RuleMatch(number)
        if any(way and self._match_prompts((*prompts, way))[-1] != again for way in ways_out):
            return None
        return unexpected if self._match_prompts((*prompts, unexpected))[-1] == again else None

    def _pattern(self, answer: RuleMatch, avoided: Sequence[Pattern]) -> Pattern:
        pattern = self._rules[answer.rule].pattern
        if answer.turn is not None or pattern in avoided:
            raise UndecidedError
        return pattern

    # ---- playing

    def _match_with_limits_used(self, subject: MatchSubject, number: int) -> RuleMatch | None:
        """Return the match if every limited rule but one is used up."""
        counts = {rule: limit for rule, limit in self._limited.items() if rule != number}
        return self._script.match_prompt(subject, None, counts).match

    def _match_prompts(self, prompts: Sequence[MatchSubject]) -> list[RuleMatch | None]:
        """Return the match of each prompt of a conversation, from its beginning."""
        counts: Counter[int] = Counter()
        position: ScriptPosition | None = None
        matches = []
        for subject in prompts:
            advance = self._script.match_prompt(subject, position, counts)
            position = advance.position
            if advance.limited_rule is not None:
                counts[advance.limited_rule] += 1
            matches.append(advance.match)
        return matches

    def _answer_prompts(self, prompts: Sequence[MatchSubject]) -> tuple[str | None, ...]:
        """Return the answer of each prompt of a conversation, from its beginning."""
        default = "default_response" if self._has_default else None
        return tuple(default if match is None else _location(match) for match in self._match_prompts(prompts))


def _location(match: RuleMatch) -> str:
    entry = f"responses[{match.rule}]"
    return entry if match.turn is None else f"{entry}.turns[{match.turn}]"


MAX_RULES = 500
"""Maximum number of rules compared with a prompt."""
MAX_COMPARED_CHARACTERS = 2_000
"""Maximum number of characters of a prompt that are compared."""

_MAX_QUOTED = 60
_prepare_text = lru_cache(maxsize=4096)(compile_predicate)
_MISMATCH_WORDS = {
    TextKind.EXACT: "is not",
    TextKind.CONTAINS: "does not contain",
    TextKind.REGEX: "does not match the regex",
    TextKind.GLOB: "is not like the glob",
}


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A rule that did not match.

    Attributes:
        place: its location, as a path of the file.
        failed: each predicate that does not hold, in words.
        example: a prompt that its prompt pattern matches; None if none was found.
    """

    place: str
    failed: tuple[str, ...]
    example: str | None

    def __str__(self) -> str:
        """Return the near miss as one line."""
        example = "" if self.example is None else f"; {_quote(self.example)} would match"
        return f"{self.place}: {' and '.join(self.failed)}{example}"


class NearMisses:
    """Index of rules for the comparison with unmatched prompts.

    Args:
        rules: the rules, in order; the first five hundred are compared.
    """

    def __init__(self, rules: Sequence[ScriptRule]) -> None:
        self._candidates = [_Candidate(number, rule) for number, rule in enumerate(rules[:MAX_RULES])]

    def closest(self, subject: MatchSubject, count: int = 3) -> list[NearMiss]:
        """Return the rules closest to a prompt, best first.

        Rules with fewer failed predicates are closer; ties are broken by similarity to the prompt.
        """
        ranked = sorted(
            (len(failed), -candidate.similarity(subject), candidate.number, failed)
            for candidate in self._candidates
            if (failed := tuple(candidate.failed_predicates(subject)))
        )
        return [
            NearMiss(f"responses[{number}]", failed, self._candidates[number].make_example(subject))
            for _, _, number, failed in ranked[:count]
        ]


class _Candidate:
    def __init__(self, number: int, rule: ScriptRule) -> None:
        self.number = number
        self._pattern = rule.pattern

    def failed_predicates(self, subject: MatchSubject) -> Iterator[str]:
        """Yield each predicate that does not hold."""
        pattern = self._pattern
        if not _holds(pattern.text, subject.text):
            yield f"the prompt {_describe_mismatch(pattern.text)}"
        if pattern.model is not None and not _holds(pattern.model, subject.model):
            yield f"the model {_describe_mismatch(pattern.model)}"
        if pattern.tool_result is not None:
            if subject.tool_result is None:
                yield "the request has no tool result"
            elif not _holds(pattern.tool_result, subject.tool_result):
                yield f"the tool result {_describe_mismatch(pattern.tool_result)}"
        low, high = pattern.message_index or (subject.message_index, subject.message_index)
        if not low <= subject.message_index <= high:
            wanted = f"{low}" if low == high else f"between {low} and {high}"
            yield f"message_index is {subject.message_index}, not {wanted}"

    def similarity(self, subject: MatchSubject) -> float:
        """Return the similarity of the prompt to the pattern, from 0 to 1."""
        wanted = fold(self._make_text_example or "")
        if not wanted:
            return 0.0
        given = fold(_to_unicode(subject.text))[:MAX_COMPARED_CHARACTERS]
        blocks = SequenceMatcher(
            None,
            wanted[:MAX_COMPARED_CHARACTERS],
            given,
            autojunk=False,
        ).get_matching_blocks()
        return sum(block.size for block in blocks) / len(wanted)

    def make_example(self, subject: MatchSubject) -> str | None:
        """Return a prompt that the prompt pattern matches, if the prompt is the failed predicate."""
        return None if _holds(self._pattern.text, subject.text) else self._make_text_example

    @cached_property
    def _make_text_example(self) -> str | None:
        text = self._pattern.text
        if text.kind in {TextKind.EXACT, TextKind.CONTAINS}:
            return text.text
        try:
            found = find_prompt(Pattern(text), ())
        except UndecidedError:
            return None
        return None if found is None else found.text


def _holds(pattern: TextPattern, text: str) -> bool:
    text = _to_unicode(text)
    return _prepare_text(pattern).matches(text, fold(text))


def _to_unicode(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _describe_mismatch(pattern: TextPattern) -> str:
    case = " in any case" if pattern.ignore_case else ""
    return f"{_MISMATCH_WORDS[pattern.kind]} {_quote(pattern.text)}{case}"


def _quote(text: str) -> str:
    return repr(text if len(text) <= _MAX_QUOTED else f"{text[: _MAX_QUOTED - 1]}…")
