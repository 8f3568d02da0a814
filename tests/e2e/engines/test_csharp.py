"""The C# client on Mono: its compilation, its verifier, and its turns over good and bad connections."""

from __future__ import annotations

import json
import math
import random
import re
import shutil
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from conformance.transcripts import FOLDER, INDEX
from peripety.engine import canonicalize
from support.repo.programs import LONGEST_SECONDS, are_in_order, run
from support.repo.repository import ROOT
from support.servers.engine_player import Edge, EnginePlayer
from support.session.transcripts import Tampering, tamper

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow(reason="compiles C#"), pytest.mark.timeout(LONGEST_SECONDS)]

CLIENT = ROOT / "clients" / "csharp"
SAMPLES = ROOT / "clients" / "samples"
SAMPLE = CLIENT / "samples" / "FirstTurn.cs"
TUTORIAL = ROOT / "docs" / "tutorials" / "csharp-client.md"
COMPILER = ("mcs", "-langversion:7", "-warnaserror", "-r:System.Net.Http.dll", "-r:System.Numerics.dll")
MOST_LINES = 20


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiled programs of the tests."""
    missing = [name for name in ("mcs", "mono") if shutil.which(name) is None]
    if missing:
        pytest.skip(
            f"C# client: {' and '.join(missing)} not found; "
            "apt-get install mono-mcs mono-runtime libmono-system-net-http4.0-cil"
        )
    folder = tmp_path_factory.mktemp("csharp")
    library = folder / "Peripety.Client.dll"
    stand_in = CLIENT / "test" / "UnityStandIn.cs"
    play, verify = CLIENT / "test" / "PlayTurn.cs", CLIENT / "test" / "Verify.cs"
    sources, unity = sorted(CLIENT.glob("src/*.cs")), sorted(CLIENT.glob("unity/*.cs"))
    run(*COMPILER, "-target:library", f"-doc:{folder}/doc.xml", f"-out:{library}", *sources, folder=folder)
    for program in (play, verify, SAMPLE):
        run(*COMPILER, f"-r:{library}", f"-out:{folder / program.stem}.exe", program, folder=folder)
    run(
        *(*COMPILER, "-define:UNITY_2021_3_OR_NEWER", f"-out:{folder}/Unity.exe"),
        *(*sources, *unity, stand_in, play),
        folder=folder,
    )
    return folder


@pytest.mark.parametrize("program", ["PlayTurn.exe", "Unity.exe"])
async def test_a_turn_survives_cuts(programs: Path, edge: Edge, program: str) -> None:
    await EnginePlayer(("mono", program), programs).check_cuts(edge)


@pytest.mark.parametrize("program", ["PlayTurn.exe", "Unity.exe"])
async def test_errors_have_reasons(programs: Path, edge: Edge, program: str) -> None:
    player = EnginePlayer(("mono", program), programs)
    player.check_errors(edge)
    assert player.play(edge.url, "unknown")[1] == "reason UnknownSession"
    await player.check_lost_server(edge)


def test_golden_transcripts_are_verified_and_tampered_ones_refused(programs: Path, tmp_path: Path) -> None:
    expected: dict[Path, str] = {}
    for name, entry in json.loads(INDEX.read_text("utf-8")).items():
        expected[FOLDER / name] = f"{entry['turns']} {entry['chain_hash']} {entry['state_hash'] or ''}"
        for number, fields in enumerate(entry["tampered"]):
            path = tmp_path / f"{number}-{name}"
            path.write_bytes(tamper((FOLDER / name).read_bytes(), Tampering(**fields)))
            expected[path] = f"false {fields['first_false_line']} {fields.get('first_false_turn', 0)}"
    assert filtered(programs, *expected) == list(expected.values())
    assert len(expected) > 200


def test_canonical_json_is_that_of_the_server(programs: Path) -> None:
    seeded = random.Random(7)
    doubles = [struct.unpack("<d", seeded.randbytes(8))[0] for _ in range(5000)]
    values = [
        *(one for one in doubles if math.isfinite(one)),
        *(seeded.randrange(10**17) / 10 ** seeded.randrange(30) for _ in range(5000)),
        *(
            5e-324,
            1.7976931348623157e308,
            2.0**53,
            1e21,
            1e-6,
            1e-7,
            1.2345678901234568e20,
            2.2250738585072011e-308,
            9007199254740993.0,
            -0.5,
            100,
            9.999999999999998,
            0.9999999999999999,
        ),
        {"\U0001f600": 1, "דּ": 2, "": [{}, [], None, True, False], '\x1f"\\/\u2028': "\b\t\n\f\r\x00"},
    ]
    lines = [json.dumps(value, ensure_ascii=bool(number % 2)) for number, value in enumerate(values)]
    assert filtered(programs, *lines, mode=["-"]) == [canonicalize(value).decode() for value in values]
    wrong = [
        "",
        "nul",
        "[1,]",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        '"',
        '"\\x"',
        '{"a":1,"a":2}',
        "[1]]",
        "1e999",
        "[" * 999,
    ]
    assert filtered(programs, *wrong, mode=["-"]) == ["not JSON"] * len(wrong)


def filtered(programs: Path, *lines: str | Path, mode: list[str] | None = None) -> list[str]:
    """Return the answers of the program `Verify` to lines of standard input."""
    text = "".join(f"{line}\n" for line in lines)
    command = ["mono", str(programs / "Verify.exe"), *(mode or [])]
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def test_the_sample_streams_a_turn_in_a_few_lines(programs: Path, edge: Edge) -> None:
    output = run("mono", programs / "FirstTurn.exe", folder=SAMPLES, PERIPETY_URL=edge.url)
    assert re.fullmatch(r"accepted \n(?s:.*)narrative_chunk There is only the wind\.\n(?s:.*)diff \n", output)
    assert len(SAMPLE.read_text("utf-8").splitlines()) <= MOST_LINES


def test_the_tutorial_reaches_a_streamed_turn(programs: Path, edge: Edge, tmp_path: Path) -> None:
    blocks = re.findall(r"```(sh|csharp|text)\n(.*?)```", TUTORIAL.read_text("utf-8"), re.DOTALL)
    commands = [text for kind, text in blocks if kind == "sh"]
    program, expected = (text for kind, text in blocks if kind != "sh")
    assert commands[0].startswith("peripety serve")
    assert program == SAMPLE.read_text("utf-8")
    shutil.copytree(CLIENT / "src", tmp_path / "clients" / "csharp" / "src")
    shutil.copytree(SAMPLES, tmp_path / "clients" / "samples")
    run("sh", "-ec", commands[1], folder=tmp_path)
    folder = tmp_path / "build" / "first-game"
    (folder / "FirstTurn.cs").write_text(program, encoding="utf-8")
    output = run("sh", "-ec", commands[2], folder=tmp_path, PERIPETY_URL=edge.url)
    assert programs
    assert are_in_order(expected, output), output
