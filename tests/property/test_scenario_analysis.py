"""Static analysis beside brute force: every short conversation over a small alphabet."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from typing import TYPE_CHECKING

import pytest

from peripety.engine.patterns.matcher import PatternMatcher
from peripety.engine.patterns.syntax import MatchSubject, Pattern, TextKind, TextPattern
from peripety.llmsim import Simulator
from peripety.llmsim.in_process import DEFAULT_MODEL
from peripety.llmsim.lint.script_lint import FlawCode, lint_script
from peripety.llmsim.script.types import Script, ScriptResponse, ScriptRule, ScriptTurn
from peripety.llmsim.script_engine import ScriptEngine, ScriptPosition

if TYPE_CHECKING:
    from peripety.llmsim.lint.script_lint import Flaw


TEXTS = ["".join(letters) for length in range(5) for letters in product("abc", repeat=length)]
SAID = ScriptResponse("said")
REGEXES = (
    "^a",
    "b$",
    "^[ab]*$",
    "a.b",
    "(ab)+",
    "^$",
    "^.?$",
    "a^",
    "[^a]",
    "a|b",
    "^a+$",
    r"\bab\b",
    "c{2}",
)


def random_pattern(random: Random) -> Pattern:
    kind = random.choice([*TextKind])
    text = "".join(random.choices("ab", k=random.randint(0, 2)))
    if kind is TextKind.REGEX:
        text = random.choice(REGEXES)
    if kind is TextKind.GLOB:
        text = random.choice(("a*", "*b", "?", "[ab]", "*", "[!a]*"))
    return Pattern(TextPattern(kind, "" if kind is TextKind.ANY else text))


def random_scenario(random: Random) -> Script:
    rules = tuple(
        ScriptRule(
            random_pattern(random),
            SAID,
            max_matches=random.choice((None, None, None, 0, 1, 2)),
            turns=tuple(ScriptTurn(random_pattern(random), SAID) for _ in range(random.choice((0, 0, 1, 2)))),
        )
        for _ in range(random.randint(1, 4))
    )
    return Script(rules, default_response=random.choice((None, SAID)))


def reached(scenario: Script) -> set[str]:
    """Every label that some conversation of short prompts gets."""
    script = ScriptEngine(scenario)
    labels: set[str] = set()
    begin: tuple[ScriptPosition | None, tuple[int, ...]] = None, (0,) * len(scenario.responses)
    seen, pending = {begin}, [begin]
    while pending:
        position, counts = pending.pop()
        for text in TEXTS:
            advance = script.match_prompt(
                MatchSubject(text, DEFAULT_MODEL),
                position,
                dict(enumerate(counts)),
            )
            if advance.match is not None:
                labels.add(advance.match.label)
            after = (
                advance.position,
                tuple(count + (rule == advance.limited_rule) for rule, count in enumerate(counts)),
            )
            if after not in seen:
                seen.add(after)
                pending.append(after)
    return labels


def replayed(scenario: Script, flaw: Flaw) -> list[str | None]:
    with Simulator(scenario) as simulator:
        return [simulator.execute(said.text, model=said.model).label for said in flaw.witness]


def label(place: str) -> str:
    return (
        place.removesuffix(".max_matches")
        .removesuffix(".pattern")
        .replace("responses", "response")
        .replace("turns", "turn")
    )


@pytest.mark.parametrize("seed", range(150))
def test_no_alarm_is_false_and_every_witness_shows_what_is_said(seed: int) -> None:
    scenario = random_scenario(Random(seed))
    labels = reached(scenario)
    for flaw in lint_script(scenario):
        match flaw.code:
            case FlawCode.STALLING_SEQUENCE:
                *before, last = replayed(scenario, flaw)
                rule = label(flaw.place).partition(".")[0]
                assert last != label(flaw.place)
                assert rule in before
            case _:
                assert label(flaw.place) not in labels
                assert label(flaw.place) not in replayed(scenario, flaw)


@pytest.mark.parametrize("seed", range(60))
def test_a_rule_behind_one_that_takes_as_much_is_found(seed: int) -> None:
    random = Random(seed)
    scenario = random_scenario(random)
    taker = replace(random.choice(scenario.responses), max_matches=None)
    planted = Script((*scenario.responses, taker, taker), default_response=scenario.default_response)
    place = f"responses[{len(scenario.responses) + 1}]"
    assert {flaw.place.partition(".")[0] for flaw in lint_script(planted)} >= {place}


@pytest.mark.parametrize("seed", range(60))
def test_rules_that_have_all_a_share_are_left_alone(seed: int) -> None:
    random = Random(seed)
    texts = random.sample([text for text in TEXTS if len(text) == 3], k=5)
    rules = tuple(
        ScriptRule(
            Pattern(TextPattern(random.choice((TextKind.EXACT, TextKind.GLOB)), text)),
            SAID,
            turns=(ScriptTurn(Pattern(), SAID),),
        )
        for text in texts
    )
    assert lint_script(Script((*rules, ScriptRule(Pattern(), SAID)))) == []


def test_short_texts_tell_these_patterns_apart() -> None:
    patterns = [Pattern(TextPattern(TextKind.REGEX, regex)) for regex in REGEXES]
    answered = {
        tuple(PatternMatcher([each]).matches(0, MatchSubject(text)) for text in TEXTS) for each in patterns
    }
    assert len(answered) == len(REGEXES)
