"""The command that a newcomer types first, with any text, as a process of its own."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from peripety import engine
from peripety.cli.render.game_words import GameWords
from support.engine.specs import playable
from support.repo.repository import ROOT
from support.servers.processes import PERIPETY, ServerProcess, environment, terminal

TEXTS = {
    "empty": "",
    "spaces": "  \n\t ",
    "quotes": 'She said: "it\'s" `done` $HOME \\ [bold]{}%s',
    "emoji": "🙂🙃👩‍👩‍👧‍👦🏴‍☠️",
    "right to left": "שלום עולם, مرحبا بالعالم",
    "no spaces": "我们需要在三天之内完成这件事情",
    "one word": "x",
    "100 KB": "many words of text " * 5263,
    "control characters": "a\x00b\x1b[2Jc\x07",
    "json": '{"a": [1, 2], "b": null}',
}

PROMPTS = ROOT.parent / "shared" / "data" / "prompts.md"


def peripety(
    home: Path,
    *arguments: str,
    stdin: bytes = b"",
    **settings: str,
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*PERIPETY, *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        env=environment(home, **settings),
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def play(home: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    return peripety(
        home,
        "play",
        "--auto",
        "--turns",
        "5",
        "--description",
        "-",
        *options,
        stdin=text.encode(),
    )


@pytest.mark.slow(reason="whole games of several texts")
@pytest.mark.parametrize("name", ["en-03", "en-09", "en-15", "en-20"])
def test_the_record_contradicts_no_sentence_of_a_game_without_a_model(tmp_path: Path, name: str) -> None:
    texts = json.loads((ROOT / "tests" / "data" / "offline_reading" / "texts.json").read_text())["texts"]
    text = next(one["text"] for one in texts if one["id"] == name)
    done = peripety(tmp_path, "play", "--auto", "--description", text)
    assert done.returncode == 0, done.stderr
    assert "(Another version follows.)" not in done.stdout


@pytest.mark.slow_after(1, reason="starts a process for each case")
@pytest.mark.parametrize("name", TEXTS)
def test_any_text_becomes_a_game_of_five_turns(tmp_path: Path, name: str) -> None:
    game = play(tmp_path, TEXTS[name])
    assert game.returncode == 0, game.stderr
    taken = [line for line in game.stdout.splitlines() if line.startswith("> ")]
    languages = [*map(GameWords, ("en", "es", "de", "zh"))]
    endings = [words.say(how, turns="").rstrip(" .。") for words in languages for how in ("won", "lost")]
    assert len(taken) == 5 or any(ending in game.stdout for ending in endings)
    assert game.stderr == ""
    assert "\x1b" not in game.stdout
    story = game.stdout
    for words in languages:
        story = story.partition(words.say("play_yourself", how=""))[0]
    assert not re.search(r"state\.|state\[|→ \d|[0-9a-f]{12}[^0-9a-f]", story)


@pytest.mark.slow(reason="starts a process for a whole game")
def test_each_event_is_a_line_of_json_and_nothing_else(tmp_path: Path) -> None:
    game = play(tmp_path, "A text.", "--json")
    events = [json.loads(line) for line in game.stdout.splitlines()]
    steps = [event["step"] for event in events]
    assert steps == sorted(steps, key=["generation", "compilation", "session", "turn", "end"].index)
    assert sum("committed" in event for event in events) == 5
    assert game.stderr == ""


@pytest.mark.slow(reason="starts several processes")
def test_a_point_of_view_that_the_scenario_lacks_is_misuse(tmp_path: Path) -> None:
    done = play(tmp_path, "A text.", "--pov", "nobody")
    assert done.returncode == 2
    assert "point of view 'nobody' is not a playable entity: use one of you" in done.stderr


@pytest.mark.slow(reason="starts a process for each case")
def test_the_same_text_and_seed_give_the_same_game(tmp_path: Path) -> None:
    hashes = []
    for home in (tmp_path / "one", tmp_path / "two"):
        home.mkdir()
        game = play(home, "The same text.", "--json", "--seed", "5")
        events = [json.loads(line) for line in game.stdout.splitlines()]
        hashes.append([event["committed"]["state_hash"] for event in events if "committed" in event])
    assert hashes[0] == hashes[1]


@pytest.mark.slow(reason="starts a process for each case")
@pytest.mark.parametrize("name", ["empty", "emoji", "right to left", "100 KB"])
def test_generate_prints_a_valid_specification_and_nothing_else(tmp_path: Path, name: str) -> None:
    done = peripety(tmp_path, "generate", "--description", "-", "--json", stdin=TEXTS[name].encode())
    assert (done.returncode, done.stderr) == (0, "")
    assert not engine.validate(done.stdout)
    assert engine.canonicalize(json.loads(done.stdout)).decode() + "\n" == done.stdout
    checked = peripety(tmp_path, "validate", "-", stdin=done.stdout.encode())
    assert (checked.returncode, checked.stdout) == (0, "-: valid\n")


@pytest.mark.slow(reason="starts a process for each case")
def test_generate_writes_a_file_that_the_other_commands_read(tmp_path: Path) -> None:
    out = str(tmp_path / "out.json")
    assert peripety(tmp_path, "generate", "--description", "A text.", "--out", out).returncode == 0
    assert peripety(tmp_path, "validate", out).returncode == 0
    report = json.loads(peripety(tmp_path, "dry-run", out, "--runs", "50", "--json").stdout)
    assert report["runs"] == 50


@pytest.mark.slow(reason="starts a process for each case")
def test_generate_into_nowhere_is_misuse(tmp_path: Path) -> None:
    done = peripety(
        tmp_path,
        "generate",
        "--description",
        "A text.",
        "--out",
        str(tmp_path / "no" / "where.json"),
    )
    assert done.returncode == 2
    assert "cannot write" in done.stderr


@pytest.mark.slow(reason="starts a process for each case")
@pytest.mark.parametrize("text", [b"\xff\xfe", b"x" * (1024 * 1024 + 1), b"x" * (200 * 1024)])
def test_a_description_that_cannot_be_used_is_a_clear_error(tmp_path: Path, text: bytes) -> None:
    done = peripety(tmp_path, "play", "--auto", "--description", "-", stdin=text)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.slow(reason="starts a process")
def test_a_setting_that_makes_no_sense_is_a_clear_error(tmp_path: Path) -> None:
    done = peripety(tmp_path, "play", "--auto", MODEL_PROVIDER="nobody")
    assert done.returncode == 2
    assert "MODEL_PROVIDER" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow(reason="starts a process for each case")
def test_an_address_that_is_taken_is_a_clear_error(tmp_path: Path) -> None:
    done = peripety(tmp_path, "serve", "--listen", "256.0.0.1:1")
    assert done.returncode in {1, 2}
    assert done.stderr.count("error: ") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.slow(reason="starts a process for each case")
def test_a_server_logs_first_which_core_it_runs(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "gateway") as server:
        first = json.loads(server.log.splitlines()[0])
    assert (first["event"], first["address"]) == ("serving", server.address)
    assert (first["core"], first["core_version"]) == (engine.BACKEND, engine.BACKEND_VERSION)


@pytest.mark.slow(reason="starts a process for each case")
def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    game = subprocess.Popen(
        [*PERIPETY, "play", "--auto", "--turns", "5"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
    )
    assert game.stdout is not None
    assert game.stderr is not None
    game.stdout.readline()
    game.stdout.close()
    with game.stderr:
        assert b"Traceback" not in game.stderr.read()
    game.wait(timeout=30)


def shell(home: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which `peripety` is the program."""
    command = f'peripety() {{ {shlex.join(PERIPETY)} "$@"; }}; {line}'
    return subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment(home),
    )


def test_verdicts_that_nobody_reads_on_end_quietly(tmp_path: Path) -> None:
    (tmp_path / "many.jsonl").write_bytes(b"{}\n" * 2000)
    done = shell(tmp_path, "peripety validate --json $HOME/many.jsonl | head -n 1")
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


@pytest.mark.slow(reason="starts a process")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("option", ["", "--json"])
def test_output_that_finds_no_room_is_told_once_and_stops_the_work(tmp_path: Path, option: str) -> None:
    (tmp_path / "many.jsonl").write_bytes(b"{}\n" * 2000)
    done = shell(tmp_path, f"peripety validate {option} $HOME/many.jsonl $HOME/many.jsonl >/dev/full")
    assert done.returncode == 1
    assert done.stderr == "error: cannot write the output: No space left on device\n"


@pytest.mark.slow_after(1, reason="starts a process for each case")
@pytest.mark.parametrize(
    "line",
    ["--version", "--help", "validate $HOME/one.json", "dry-run $HOME/one.json --json"],
)
@pytest.mark.parametrize("closed", [">&-", "<&- >&-", ">&- 2>&-"])
def test_a_closed_standard_output_is_no_error(tmp_path: Path, line: str, closed: str) -> None:
    (tmp_path / "one.json").write_bytes(playable())
    done = shell(tmp_path, f"peripety {line} {closed}")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


@pytest.mark.slow(reason="starts a process and waits for its turns")
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_the_game_quietly(tmp_path: Path) -> None:
    game = subprocess.Popen(
        [*PERIPETY, "play", "--auto", "--turns", "100000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
    )
    assert game.stdout is not None
    next(line for line in game.stdout if line.startswith(b"> "))
    game.send_signal(signal.SIGINT)
    stdout, stderr = game.communicate(timeout=30)
    assert game.returncode == 130
    assert b"Continue with: peripety play --session" in stdout
    assert b"Traceback" not in stderr


@pytest.mark.slow(reason="starts several processes at a terminal")
def test_a_person_at_a_terminal_is_asked_and_continues_later(tmp_path: Path) -> None:
    with terminal([*PERIPETY, "play"], environment(tmp_path)) as person:
        person.wait_for("Describe the scenario >")
        person.type("A few words.")
        person.wait_for("Enter lists the actions")
        person.wait_for("> ")
        person.type("words to say")
        person.wait_for("(No time has passed.")
        person.wait_for("> ")
        person.type("help")
        person.wait_for("let a turn pass")
        person.wait_for("> ")
        person.type("wait")
        person.wait_for("> ")
        person.type("status")
        person.wait_for("Turn 1, ")
        person.wait_for("> ")
        person.type("q")
        person.wait_for("Continue with: peripety play --session")
        assert person.process.wait(timeout=30) == 0
        assert "\x1b[" in person.screen
    with terminal([*PERIPETY, "play", "--continue"], environment(tmp_path)) as person:
        person.wait_for("Enter lists the actions")
        person.wait_for("> ")
        person.type("status")
        person.wait_for("Turn 1, ")
        person.wait_for("> ")
        person.type("undo")
        person.wait_for("Back at the start.")
        person.wait_for("> ")
        person.type("quit")
        assert person.process.wait(timeout=30) == 0


@pytest.mark.slow(reason="plays a game at a terminal")
def test_an_action_is_taken_by_its_key_and_by_words_that_name_it(tmp_path: Path) -> None:
    with terminal(
        [*PERIPETY, "play", str(ROOT / "examples" / "long_way.json")], environment(tmp_path)
    ) as person:
        person.wait_for("> ")
        for typed in ("1", "I gather now."):
            person.type(typed)
            person.wait_for("Reserve +")
            person.wait_for("> ")
        person.type("status")
        person.wait_for("Turn 2, ")
        person.type("q")
        assert person.process.wait(timeout=30) == 0


@pytest.mark.slow(reason="starts a process and waits for its turns")
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_at_a_question_ends_the_game(tmp_path: Path) -> None:
    with terminal([*PERIPETY, "play", "--description", ""], environment(tmp_path)) as person:
        person.wait_for("Enter lists the actions")
        person.wait_for("> ")
        person.process.send_signal(signal.SIGINT)
        person.wait_for("Continue with: peripety play --session")
        assert person.process.wait(timeout=30) == 130
        assert "Traceback" not in person.screen


@pytest.mark.slow(reason="reads sample descriptions beside the repository, if present")
@pytest.mark.skipif(
    not PROMPTS.exists(),
    reason=f"sample descriptions are not beside this repository ({PROMPTS.name})",
)
def test_sample_descriptions_become_games(tmp_path: Path) -> None:
    samples = re.findall(r"^\| \d+ \| (.+?) \|", PROMPTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert samples
    for number, sample in enumerate(samples):
        home = tmp_path / str(number)
        home.mkdir()
        game = play(home, sample)
        assert game.returncode == 0, game.stderr
