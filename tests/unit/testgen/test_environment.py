from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from peripety.errors import InvalidArgumentError
from peripety.testgen.environment import (
    MAX_FILES,
    MAX_PREVIEW_BYTES,
    find_prohibited_tools,
    outline_of,
    scan_environment,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_files_are_told_with_their_beginning_and_what_is_in_them(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows.csv").write_text("id;name\n1;a\n")
    (tmp_path / "tool.py").write_text("def f(a, b=1): ...\n")
    found = scan_environment(tmp_path)
    assert [(file.path, file.structure) for file in found.files] == [
        ("data/rows.csv", ("column id", "column name")),
        ("tool.py", ("def f(a, b=1)",)),
    ]
    assert found.files[1].preview == "def f(a, b=1): ...\n"
    assert found.languages == ("Python",)
    assert found.file_count == 2
    assert found.cpu_count > 0


def test_nothing_of_a_directory_is_run(tmp_path: Path) -> None:
    trap = "import pathlib; pathlib.Path(__file__).with_name('ran').touch()\n"
    for name in ("setup.py", "conftest.py", "sitecustomize.py", "__init__.py"):
        (tmp_path / name).write_text(trap)
    (tmp_path / "Makefile").write_text("$(shell touch ran)\n")
    scan_environment(tmp_path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name",
    [
        *(".env", ".env.local", "live.env", "server.pem", "id_rsa", "credentials.json", "my_api_key.txt"),
        *(".netrc", "secrets/live.yaml", "a/private/b/c.txt"),
    ],
)
def test_of_a_file_that_may_hold_secrets_nothing_but_its_name_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text('{"key": "canary"}')
    found = scan_environment(tmp_path)
    assert [file.path for file in found.files] == [name]
    assert "canary" not in repr(found)


def test_source_code_about_secrets_is_shown(tmp_path: Path) -> None:
    (tmp_path / "tokens.py").write_text("def count(text): ...\n")
    assert scan_environment(tmp_path).files[0].structure == ("def count(text)",)


def test_where_the_directory_itself_lies_makes_nothing_secret(tmp_path: Path) -> None:
    place = tmp_path / "private"
    place.mkdir()
    (place / "a.txt").write_text("text")
    assert scan_environment(place).files[0].preview == "text"


def test_a_name_that_is_no_text_is_told_as_far_as_it_is_one(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff.txt")).write_text("text")
    (file,) = scan_environment(tmp_path).files
    assert (file.path, file.preview) == ("a\N{REPLACEMENT CHARACTER}.txt", "text")


def test_a_large_file_is_shown_in_part_and_one_that_is_no_text_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_text("é" * 10_000)
    (tmp_path / "image.bin").write_bytes(b"\x00\xff" * 100)
    binary, large = scan_environment(tmp_path).files
    assert (binary.preview, binary.size_bytes) == ("", 200)
    assert large.size_bytes == 20_000
    assert large.preview == "é" * (MAX_PREVIEW_BYTES // 2)


def test_of_many_files_those_nearest_to_the_top_are_looked_into(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    for number in range(MAX_FILES):
        (deep / f"{number}.txt").touch()
    (tmp_path / "z.txt").touch()
    found = scan_environment(tmp_path)
    assert found.file_count == MAX_FILES + 1
    assert len(found.files) == MAX_FILES
    assert "z.txt" in {file.path for file in found.files}


def test_what_is_hidden_or_built_is_passed_over_and_links_are_not_followed(tmp_path: Path) -> None:
    for name in (".git", "node_modules", "target"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.py").touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "outside.txt").symlink_to("/etc/hostname")
    assert scan_environment(tmp_path).files == ()


def test_versions_come_from_manifests(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nrequires-python = ">=3.11"\n')
    (tmp_path / "go.mod").write_text("module m\n\ngo 1.22\n")
    (tmp_path / "package.json").write_text(json.dumps({"engines": {"node": ">=20"}}))
    (tmp_path / "Cargo.toml").write_text("not [toml")
    assert scan_environment(tmp_path).languages == ("Go 1.22", "JavaScript >=20", "Python >=3.11")


def test_a_tool_that_the_task_forbids_is_not_available(tmp_path: Path) -> None:
    found = scan_environment(tmp_path, "Do not use bash.")
    assert found.prohibited_tools == ("bash",)
    assert "bash" not in found.available_tools


def test_a_place_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        scan_environment(tmp_path / "gone")
    with pytest.raises(InvalidArgumentError, match="File name too long"):
        scan_environment(tmp_path / ("long" * 100))


@pytest.mark.parametrize(
    ("description", "tools"),
    [
        ("You must not use numpy, pandas or `scipy`.", ("numpy", "pandas", "scipy")),
        ("Solve it without using awk and sed.", ("awk", "sed")),
        ("curl is not allowed. Network access is fine.", ("curl",)),
        ("Forbidden: gcc, clang", ("gcc", "clang")),
        ("Do not use any external tools.", ()),
        ("Use python3 and write the result.", ()),
        ("", ()),
    ],
)
def test_prohibitions_are_read_out_of_the_description(description: str, tools: tuple[str, ...]) -> None:
    assert find_prohibited_tools(description) == tools


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "a.py",
            "import os\nLIMIT = 3\nclass A:\n    def f(self, x): ...\n",
            "import os|LIMIT|class A|def A.f(self, x)",
        ),
        (
            "a.py",
            "import argparse\np.add_argument('--size', '-s')\n",
            "import argparse|parameter --size|parameter -s",
        ),
        ("a.json", '{"a": {"b": 1}, "c": []}', "key a|key a.b|key c"),
        ("a.jsonl", '{"a": 1}\n{"b": 2}\n', "key a"),
        ("a.json", "{", ""),
        ("a.toml", "[a]\nb = 1\n", "key a|key a.b"),
        ("a.tsv", "x\ty\n1\t2\n", "column x|column y"),
        ("a.ts", "export async function go(a: string) {}\n", "function go(a: string)"),
        ("a.go", "func (s *S) Go(a int) {}\nfunc Run(a int) {}\n", "func Run(a int)"),
        ("a.rs", "pub fn run(a: u8) -> u8 { a }\npub struct S;\n", "fn run(a: u8)|struct S"),
        ("a.sql", "CREATE TABLE t (a int,\n b text);", "table t(a int, b text)"),
        ("a.md", "# One\ntext\n## Two ##\n", "heading One|heading Two"),
        ("a.yaml", "a: 1\nb:\n  c: 2\n", "key a|key b"),
        ("a.unknown", "whatever", ""),
    ],
)
def test_what_is_in_a_file_is_found_by_its_kind(name: str, text: str, expected: str) -> None:
    assert "|".join(outline_of(name, text)) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.js", "\n" * 100_000),
        ("a.md", f"# {' ' * 100_000}a{' ' * 100_000}b"),
        ("a.sql", "create table a(" * 16_000),
        ("a.py", f"a = {'-' * 100_000}1"),
        ("pyproject.toml", f"a = {'[' * 20_000}"),
    ],
)
@pytest.mark.timeout(10)
def test_a_file_that_is_made_to_be_hard_to_read_takes_no_longer_than_another(
    tmp_path: Path,
    name: str,
    text: str,
) -> None:
    (tmp_path / name).write_text(text)
    assert [file.path for file in scan_environment(tmp_path).files] == [name]


@pytest.mark.parametrize("description", ["a" * 100_000, "a, " * 30_000, "a-" * 50_000, "a or " * 20_000])
@pytest.mark.timeout(10)
def test_a_long_description_is_looked_through_in_no_time(description: str) -> None:
    assert find_prohibited_tools(f"{description} Do not use awk.") == ("awk",)


def test_structure_is_bounded() -> None:
    found = outline_of("a.json", json.dumps({f"key_{number}" * 40: 1 for number in range(500)}))
    assert len(found) == 60
    assert max(map(len, found)) == 200
