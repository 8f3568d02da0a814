"""Generation service with scripted models, and models of graded quality."""

from __future__ import annotations

import json
import random
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from peripety import engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.author.blueprint import SeededChoice
from peripety.author.blueprint_builder import compose_from_analysis
from peripety.core.config import ProviderName
from peripety.engine.patterns.syntax import Pattern, TextKind, TextPattern
from peripety.llmsim.script.types import Script, ScriptResponse, ScriptRule
from peripety.llmsim.server.runner import serve_in_thread
from peripety.llmsim.simulator import Simulator
from peripety.llmsim.types import SimStopReason
from peripety.rpc.channel import open_channel
from peripety.scenario.outline_authoring import outline_author
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.server.app import serve
from support.gateway.providers import PROVIDERS, config_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub
    from peripety.author.blueprint import Blueprint
    from peripety.author.text_analysis.terms import TermSet
    from peripety.core.config import Config
    from peripety.llmsim.script_engine import Exchange
    from peripety.llmsim.types import SimRequest
    from support.llmsim.simulator import Gate


_CLAUSES = {
    "en": (
        *("I run the {a}", "the {a} is rising", "we have {n} weeks left", "there are {m} {a}"),
        *("{P} wants the {a} by Friday", "only {m} percent of the {a} remain", "we asked {P} about the {a}"),
    ),
    "es": ("Dirijo el {a}", "el {a} sube", "quedan {n} semanas", "hay {m} {a}", "nuestra {a} no es de {P}"),
    "fr": ("Je dirige le {a}", "la {a} monte", "il reste {n} jours", "il y a {m} {a}", "notre {a} est à {P}"),
    "de": ("Ich leite das {A}", "die {A} steigt", "es bleiben noch {n} Wochen", "wir haben {m} {A}"),
    "pt": ("Dirijo o {a}", "a {a} sobe", "restam {n} dias", "há {m} {a}", "o nosso {a} não é de {P}"),
    "it": ("Dirigo il {a}", "la {a} sale", "restano {n} ore", "ci sono {m} {a}", "il nostro {a} è di {P}"),
}
_SCRIPTS = (
    (0x430, 0x44F),
    (0x5D0, 0x5EA),
    (0x627, 0x64A),
    (0x915, 0x939),
    (0x4E00, 0x9FFF),
    (0x30A1, 0x30FA),
)
_ANYTHING = ((0x20, 0x7E), (0xC0, 0x24F), *_SCRIPTS, (0x1F300, 0x1F5FF))
_NUMBERS = ("two", "9", "twelve", "40")
_AMOUNTS = ("7", "40", "3,000", "eighty", "120")


def descriptions(count: int, seed: int = 0) -> Iterator[str]:
    """So many descriptions, the first of them empty; number n does not depend on their count."""
    yield ""
    for number in range(1, count):
        rng = random.Random(f"{seed}:{number}")
        kind = number % 4
        if kind == 0:
            yield _nonsense(rng)
        elif kind == 1:
            yield _in_script(rng)
        else:
            yield _in_language(rng)


def _in_language(rng: random.Random) -> str:
    clauses = _CLAUSES[rng.choice(sorted(_CLAUSES))]
    told = [_filled(rng.choice(clauses), rng) for _ in range(rng.choice((1, 2, 3, 5, 8, 30)))]
    return ", ".join(told) + "."


def _filled(clause: str, rng: random.Random) -> str:
    word = _word(rng)
    return clause.format(
        a=word,
        A=word.capitalize(),
        P=_word(rng).capitalize(),
        n=rng.choice(_NUMBERS),
        m=rng.choice(_AMOUNTS),
    )


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("bdgkprtvz") + rng.choice("aou") for _ in range(rng.choice((2, 3, 4))))


def _in_script(rng: random.Random) -> str:
    first, last = rng.choice(_SCRIPTS)
    words = range(rng.choice((1, 3, 9, 25)))
    return " ".join("".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 9))) for _ in words)


def _nonsense(rng: random.Random) -> str:
    length = rng.choice((1, 3, 20, 300))
    return "".join(chr(rng.randint(*rng.choice(_ANYTHING))) for _ in range(length))


ORIGINAL_PROVIDERS = tuple(
    spoken for spoken in PROVIDERS if spoken.name in {ProviderName.ANTHROPIC, ProviderName.OPENAI}
)

# Those who look ahead take minutes without the native core.
LEVEL = pb.VALIDATION_LEVEL_CERTIFICATE if engine.BACKEND == "native" else pb.VALIDATION_LEVEL_DRY_RUN


class Listening(Simulator):
    """A scripted LLM that records whole requests."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.requests: list[SimRequest] = []

    def begin(self, request: SimRequest) -> Exchange:
        self.requests.append(request)
        return super().begin(request)


class GatedModel(Listening):
    """A scripted LLM with a gate before one of its answers."""

    def __init__(self, script: Script, gate: Gate) -> None:
        super().__init__(script)
        self.gate = gate

    def begin(self, request: SimRequest) -> Exchange:
        self.gate.wait()
        return super().begin(request)


@dataclass(frozen=True)
class Heard:
    """The events of writing a specification."""

    events: list[pb.GenerateScenarioResponse]

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of all events except progress."""
        kinds = [event.WhichOneof("event") for event in self.events]
        return [kind for kind in kinds if kind and kind != "progress"]

    @property
    def completed(self) -> pb.GenerateScenarioResponse.Completed:
        assert self.events[-1].HasField("completed"), self.events[-1]
        return self.events[-1].completed

    @property
    def rejected(self) -> pb.GenerateScenarioResponse.Rejected:
        assert self.events[-1].HasField("rejected"), self.events[-1]
        return self.events[-1].rejected

    @property
    def told(self) -> list[set[str]]:
        """The codes of what was found after each answer with something wrong."""
        return [
            {finding.code for finding in event.findings.findings}
            for event in self.events
            if event.HasField("findings")
        ]


@dataclass(frozen=True)
class Author:
    """The service, and the model that it uses."""

    stub: ScenarioServiceAsyncStub
    model: Listening

    async def writes(self, **fields: Any) -> Heard:
        """All events of one order."""
        return await heard(self.stub, **{"description": "alpha wanes", "seed": 7, **fields})


async def heard(stub: ScenarioServiceAsyncStub, **fields: Any) -> Heard:
    """All events of one order."""
    request = pb.GenerateScenarioRequest(**{"request_id": str(uuid4()), "level": LEVEL, **fields})
    return Heard([event async for event in stub.GenerateScenario(request)])


@asynccontextmanager
async def scenario_service(config: Config) -> AsyncIterator[ScenarioServiceAsyncStub]:
    """Serve in this process, with the providers of the configuration, until the block ends."""
    async with serve(config, services={"gateway", "scenarios"}) as app, open_channel(app.address) as channel:
        yield ScenarioServiceStub(channel)


@asynccontextmanager
async def authoring(home: Path, spoken: Any, scenario: Script) -> AsyncIterator[Author]:
    """Serve until the block ends.

    Args:
        home: the folder of the service's database.
        spoken: the provider whose protocol the scripted LLM speaks.
        scenario: the script of the LLM.
    """
    model = Listening(scenario)
    with serve_in_thread(model) as upstream:
        database = f"sqlite:///{home / 'test.db'}"
        config = config_of(spoken, upstream.url, database_url=database, listen="127.0.0.1:0")
        async with scenario_service(config) as stub:
            yield Author(stub, model)
    model.close()


Json = dict[str, Any]

# Small, winnable, and without a single finding, not even a warning.
_GOOD = ((9, 3), (7, 4), (9, 137))
_SPOT = "spot"


@dataclass(frozen=True)
class Written:
    """An answer, and what a reader can make of it."""

    response: ScriptResponse
    document: Json


@dataclass(frozen=True)
class Grade:
    """One kind of answer quality.

    Attributes:
        write: turns a good specification into the model's first answer.
        code: a code that is reported for that answer; None if it is correct.
        is_moved: True if the engine changes numbers of it.
    """

    write: Callable[[Json], Written]
    code: str | None = None
    is_moved: bool = False


def good_specs() -> list[Json]:
    """Specifications that earn a certificate, with the narrator's rights of every written one."""
    return [{**json.loads(generate_spec(seed, index)), "narrator_scope": []} for seed, index in _GOOD]


def patient(grade: Grade, good: Json) -> Script:
    """Return a model that repairs only what is reported, and repeats the rest.

    If the request does not contain the reason, the model answers as in the first request.
    """
    first = grade.write(good)
    rules = [ScriptRule(Pattern(), first.response)]
    if grade.code is not None:
        rules.insert(0, ScriptRule(_naming(grade.code), as_answer(difference(first.document, good))))
    return Script(tuple(rules))


def in_turn(*documents: Json) -> Script:
    """A model that writes one document after the other, each as what differs from the one before."""
    return saying(documents[0], *(difference(before, after) for before, after in pairwise(documents)))


def saying(*answers: Json) -> Script:
    """Return a model that gives one answer after the other, whatever the feedback."""
    rules = [
        ScriptRule(Pattern(message_index=(number, number)), as_answer(value))
        for number, value in enumerate(answers)
    ]
    return Script(tuple(rules))


def stubborn(grade: Grade, good: Json) -> Script:
    """Return a model that always writes the same, whatever the feedback."""
    return Script((ScriptRule(Pattern(), grade.write(good).response),))


def as_answer(document: Json) -> ScriptResponse:
    """An object as a model writes it."""
    return ScriptResponse(json.dumps(document, ensure_ascii=False))


def difference(wrong: Json, right: Json) -> Json:
    """The partial document that makes one document of another: what differs, and what is to be removed."""
    answer: Json = {}
    removed: list[str] = []
    for key in [*right, *(key for key in wrong if key not in right)]:
        was, wanted = wrong.get(key), right.get(key)
        if was == wanted:
            continue
        if isinstance(wanted, list) and isinstance(was, list):
            by_id = {entry["id"]: entry for entry in was}
            answer[key] = [entry for entry in wanted if by_id.get(entry["id"]) != entry]
            kept = {entry["id"] for entry in wanted}
            removed += [f"/{key}/{name}" for name in by_id if name not in kept]
        elif key in {"state", "negativity_budget"} and wanted is not None and was is not None:
            answer[key] = {name: value for name, value in wanted.items() if was.get(name) != value}
            removed += [f"/{key}/{name}" for name in was if name not in wanted]
        elif wanted is None:
            removed.append(f"/{key}")
        else:
            answer[key] = wanted
    answer = {key: value for key, value in answer.items() if value}
    return {**answer, "removed": removed} if removed else answer


def _naming(code: str) -> Pattern:
    return Pattern(TextPattern(TextKind.CONTAINS, f'"{code}"'))


def _with(change: Callable[[Json], None]) -> Callable[[Json], Written]:
    """An answer that is one object, with something changed in it."""

    def write(good: Json) -> Written:
        spec = deepcopy(good)
        change(spec)
        return Written(as_answer(spec), spec)

    return write


def _nothing(_spec: Json) -> None:
    """Nothing is wrong."""


def _wrong_names(spec: Json) -> None:
    for action in spec["actions"][:2]:
        action["effect"] = action.pop("effects")
    for event in spec["random_events"][:2]:
        event["probability"] = event.pop("weight")
    spec["loss_conditions"][0]["condition"] = spec["loss_conditions"][0].pop("when")


def _missing_parts(spec: Json) -> None:
    del spec["negativity_budget"], spec["random_events"]
    del spec["loss_conditions"][1:]


def _code(spec: Json) -> None:
    effect = next(
        effect for action in spec["actions"] for effect in action["effects"] if effect["op"] in {"inc", "dec"}
    )
    effect |= {"op": "set", "value": {"+": [1, 2]}}


def _heavy(spec: Json) -> None:
    for event, weight in zip(spec["random_events"], (0.9, 0, 5), strict=False):
        event["weight"] = weight


def _unwinnable(spec: Json) -> None:
    spec["state"][_SPOT] = 0
    spec["actions"][0]["effects"].append({"op": "inc", "path": f"state.{_SPOT}", "value": 1})
    beyond = spec.get("horizon", 50) + 5
    spec["win_conditions"] = [{"id": "win_1", "when": {">=": [{"var": f"state.{_SPOT}"}, beyond]}}]


def _too_easy(spec: Json) -> None:
    """So easy that moving numbers by a half does not help, and yet not impossible to lose."""
    budget = spec["negativity_budget"]
    budget["decay_per_turn"] = {path: amount / 4 for path, amount in budget["decay_per_turn"].items()}
    for event in spec["random_events"]:
        event["weight"] = 0.05
    budget["min_fail_rate"] = 0.95


def _a_little_too_easy(spec: Json) -> None:
    rate = engine.compile(json.dumps(spec)).dry_run(runs=2_000).fail_rate
    spec["negativity_budget"]["min_fail_rate"] = round(rate + 0.08, 3)


def _other_language(spec: Json) -> None:
    spec["name"] = "Альфа · アルファ · ألفا"
    for number, rule in enumerate([*spec["actions"], *spec["random_events"]]):
        rule["name"] = f"дельта {number} · デルタ"


def _truncated(good: Json) -> Written:
    """The answer ends inside of its loss conditions, before anything that follows them."""
    keys = list(good)
    before = {key: good[key] for key in keys[: keys.index("loss_conditions")]}
    text = json.dumps(good, ensure_ascii=False)
    return Written(
        ScriptResponse(text[: text.index('"loss_conditions"') + 40], stop=SimStopReason.LENGTH),
        before,
    )


def _in_prose(good: Json) -> Written:
    text = json.dumps(good, ensure_ascii=False, indent=2)
    said = f"Gladly! Here is what I made of it, see [1]:\n\n```json\n{text}\n```\n\nAnything else?"
    return Written(ScriptResponse(said), good)


GRADES: dict[str, Grade] = {
    "perfect": Grade(_with(_nothing)),
    "prose around it": Grade(_in_prose),
    "another language": Grade(_with(_other_language)),
    "wrong field names": Grade(_with(_wrong_names), "UNKNOWN_KEY"),
    "missing parts": Grade(_with(_missing_parts), "MISSING_KEY"),
    "code in values": Grade(_with(_code), "CODE_IN_VALUE"),
    "weights out of bounds": Grade(_with(_heavy), "OUT_OF_RANGE"),
    "unwinnable": Grade(_with(_unwinnable), "UNREACHABLE_WIN"),
    "too easy": Grade(_with(_too_easy), "TOO_EASY"),
    "a little too easy": Grade(_with(_a_little_too_easy), is_moved=True),
    "truncated": Grade(_truncated, "MISSING_KEY"),
}
"""Every kind, by its name."""


OUTLINE: dict[str, Any] = {
    "title": "A gauge and its keeper",
    "resources": ["fuel", "spares"],
    "assets": ["gauge"],
    "dangers": ["drift"],
    "goals": ["report"],
    "secrets": ["crack"],
    "people": ["Beta"],
    "actions": ["file the report", "mend the gauge", "trim", "barter"],
    "events": ["leak", "storm", "visit", "rust"],
    "deadline": True,
}
QUANTITIES: dict[str, Any] = {
    "quantities_01": {"name": "Fuel (reserve)", "start": "large", "fades": True},
    "quantities_02": {"name": "Spares (reserve)", "start": "small", "fades": False},
    "quantities_03": {"name": "Gauge (condition)", "start": "medium", "fades": False},
    "quantities_04": {"name": "Drift (pressure)", "start": "medium", "fades": True},
    "quantities_05": {"name": "Falls (pressure)", "start": "medium", "fades": False},
    "quantities_06": {"name": "Report (progress)", "start": "large", "fades": False},
    "quantities_07": {"name": "Crack", "start": "small", "fades": False, "known_to": "Beta", "helps": False},
}
ACTIONS: dict[str, Any] = {
    "actions_01": {
        "name": "File the report",
        "for": "Report (progress)",
        "changes": ["++ Report (progress)", "- Fuel (reserve)"],
        "how": "scaled",
    },
    "actions_02": {
        "name": "Mend the gauge",
        "for": "Gauge (condition)",
        "changes": ["++ Gauge (condition)", "- Spares (reserve)"],
        "how": "later",
    },
    "actions_03": {
        "name": "Trim",
        "for": "Drift (pressure)",
        "changes": ["-- Drift (pressure)", "- Fuel (reserve)"],
        "how": "plain",
    },
    "actions_04": {
        "name": "Barter",
        "for": "Fuel (reserve)",
        "changes": ["+++ Fuel (reserve)", "- Gauge (condition)", "+ Crack"],
        "how": "once",
    },
}
EVENTS: dict[str, Any] = {
    "events_01": {
        "name": "Leak",
        "about": "Fuel (reserve)",
        "changes": ["-- Fuel (reserve)"],
        "chance": "rare",
        "when": "low Gauge (condition)",
        "lasts": True,
    },
    "events_02": {
        "name": "Storm",
        "about": "Drift (pressure)",
        "changes": ["++ Drift (pressure)"],
        "chance": "frequent",
        "when": "always",
        "lasts": False,
    },
    "events_03": {
        "name": "Visit",
        "about": "Spares (reserve)",
        "changes": ["+ Spares (reserve)"],
        "chance": "occasional",
        "when": "always",
        "lasts": False,
    },
    "events_04": {
        "name": "Rust",
        "about": "Gauge (condition)",
        "changes": ["- Gauge (condition)"],
        "chance": "rare",
        "when": "high Crack",
        "lasts": False,
    },
}
ANSWERS = [json.dumps(answer) for answer in (OUTLINE, QUANTITIES, ACTIONS, EVENTS)]
"""All answers, in the order of the requests."""
DESCRIPTION = "Beta keeps a gauge that falls"


def composed_of(words: TermSet) -> Blueprint:
    """Return the blueprint that rules build from words."""
    return compose_from_analysis(words, SeededChoice("", 1).choose_number)


def by_rules() -> Blueprint:
    """Return the blueprint that rules build from the words of the outline."""
    return composed_of(outline_author.extract_outline_terms(OUTLINE, DESCRIPTION))


def outlined() -> Blueprint:
    """Return the blueprint of the sections."""
    return outline_author.parse_outline(OUTLINE, DESCRIPTION, by_rules())
