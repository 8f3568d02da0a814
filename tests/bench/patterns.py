"""Rules and prompts of the benchmarks of matching: many rules of every sort, prompts as people write them."""

from __future__ import annotations

from random import Random

from peripety.engine.patterns.syntax import MatchSubject, Pattern, TextKind, TextPattern

WORDS = 20_000
MODELS = ("small-1", "small-2", "large-1", "large-2-preview")
SHAPES = (
    r"^\s*$",
    r"^\d{{{}}}$",
    r"\b[A-Z]{{{}}}\d",
    r"\w{{1{}}}$",
    r"^(\w+\s){{{}}}\w+$",
    r"^.{{0,{}}}$",
)


def _words(random: Random) -> list[str]:
    letters = "eeeeeeetttttaaaaaoooooiiiiinnnnssssrrrrhhhhllldddcccuuummmffpppggwwyybbvk"
    return ["".join(random.choices(letters, k=random.randint(2, 10))) for _ in range(WORDS)]


def mixed_rules(amount: int) -> list[Pattern]:
    """So many; of 20 6 contains, 6 exact, 4 regexes (1 without a literal), 2 globs, 2 by model."""
    random = Random(amount)
    words = _words(Random(0))
    return [_rule(random, words, number) for number in range(amount)]


def _rule(random: Random, words: list[str], number: int) -> Pattern:
    one, two, three = random.choices(words, k=3)
    text = f"{one} {two} {three}"
    match number * 7 % 20:
        case 0 | 1 | 2 | 3 | 4 | 5:
            return Pattern(TextPattern(TextKind.CONTAINS, text, ignore_case=number % 3 == 0))
        case 6 | 7 | 8 | 9 | 10 | 11:
            return Pattern(TextPattern(TextKind.EXACT, text))
        case 12 | 13 | 14:
            regex = rf"\b{one} {two}\s+(the|a|an)?\s*{three}\b.*\d+"
            return Pattern(TextPattern(TextKind.REGEX, regex, ignore_case=number % 2 == 0))
        case 15:
            shape = SHAPES[number // 20 % len(SHAPES)]
            return Pattern(TextPattern(TextKind.REGEX, shape.format(number // 120 % 9 + 1)))
        case 16 | 17:
            return Pattern(TextPattern(TextKind.GLOB, f"{one} {two}*{three}?"))
        case _:
            model = TextPattern(TextKind.GLOB, random.choice(("small-*", "large-*", "large-2*")))
            return Pattern(TextPattern(TextKind.CONTAINS, text), model=model)


def mixed_prompts(rules: list[Pattern], amount: int, length: int) -> list[MatchSubject]:
    """So many prompts of about a length in characters; every other one has the text of a rule in it."""
    random = Random(length)
    words = _words(Random(0))
    prompts = []
    for number in range(amount):
        said = random.choices(words, k=length // 7)
        rule = random.choice(rules).text
        if number % 2 and rule.kind in {TextKind.CONTAINS, TextKind.EXACT}:
            said.insert(random.randrange(len(said)), rule.text)
        text = " ".join(said)
        prompts.append(MatchSubject(text[:1].upper() + text[1:], random.choice(MODELS)))
    return prompts
