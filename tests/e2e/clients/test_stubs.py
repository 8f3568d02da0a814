"""Stubs that a user generates with the `buf.gen.yaml` of a client: they compile, and call a real server.

Those of Go and TypeScript are the committed ones: `.ci/go` and `.ci/typescript` generate with these files.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.repo.programs import LONGEST_SECONDS, build_lock, run
from support.repo.repository import ROOT

if TYPE_CHECKING:
    from support.servers.processes import ServerProcess

pytestmark = [pytest.mark.slow(reason="generates code"), pytest.mark.timeout(LONGEST_SECONDS)]

CLIENTS = ROOT / "clients"
SCRIPTS = Path(sys.executable).parent
RUST_PLUGINS = ("protoc-gen-prost@^0.5", "protoc-gen-tonic@^0.5")
JAVA_PLUGINS = {
    "protoc": "com.google.protobuf:protoc:4.34.1",
    "protoc-gen-grpc-java": "io.grpc:protoc-gen-grpc-java:1.83.1",
}
RUST_CRATE = """
[package]
name = "stubs"
edition = "2024"
[lib]
path = "lib.rs"
[dependencies]
prost = "0.14"
prost-types = "0.14"
tonic = { version = "0.14", default-features = false, features = ["channel", "codegen"] }
tonic-prost = "0.14"
"""
RUST_CLIENT = """
use peripety::api::session::v1::session_service_client::SessionServiceClient;
pub type Sessions = SessionServiceClient<tonic::transport::Channel>;
"""
CALL = """
import sys
sys.path = [sys.argv[1], *(path for path in sys.path if "site-packages" in path or "lib/python" in path)]
import grpc
from peripety.api.session.v1 import session_pb2, session_pb2_grpc
assert session_pb2_grpc.__file__.startswith(sys.argv[1])
with grpc.insecure_channel(sys.argv[2]) as channel:
    stub = session_pb2_grpc.SessionServiceStub(channel)
    print(type(stub.ListSessions(session_pb2.ListSessionsRequest(page_size=1))).__name__)
"""


def generate(language: str, target: Path, *plugins: Path) -> Path:
    """Generate with the `buf.gen.yaml` of a client into a folder, with these folders first on PATH."""
    path = os.pathsep.join([*map(str, plugins), str(SCRIPTS), os.environ["PATH"]])
    run(SCRIPTS / "buf", "generate", "--output", target, folder=CLIENTS / language, PATH=path)
    return target


def files(folder: Path, suffix: str) -> dict[str, str]:
    paths = folder.rglob(f"*{suffix}")
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}


def needs(language: str, *programs: str) -> None:
    """Skip the test if a program is missing."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{language} stubs with buf: {', '.join(missing)} not on PATH")


def needs_all_clients(language: str) -> None:
    if "PERIPETY_ALL_CLIENTS" not in os.environ:
        pytest.skip(f"{language} stubs with buf: only `make test-clients` tests them")


def test_python_stubs_call_the_server(scripted_server: ServerProcess, tmp_path: Path) -> None:
    needs("Python", "grpc_python_plugin")  # Debian: protobuf-compiler-grpc
    stubs = generate("python", tmp_path) / "build" / "stubs"
    assert set(files(CLIENTS / "python" / "peripety", "_pb2.py")) == set(files(stubs / "peripety", "_pb2.py"))
    assert "ListSessionsResponse" in run(
        sys.executable, "-c", CALL, stubs, scripted_server.address, folder=tmp_path
    )


def test_rust_stubs_compile(tmp_path: Path) -> None:
    needs_all_clients("Rust")
    needs("Rust", "cargo")
    tools = ROOT / "build" / "rust-tools"
    with build_lock("rust-tools"):
        run("cargo", "install", "--quiet", "--root", tools, *RUST_PLUGINS, folder=ROOT)
    stubs = generate("rust", tmp_path, tools / "bin") / "target" / "stubs"
    modules = {path.stem.split(".")[2]: path for path in stubs.rglob("*.v1.rs")}
    source = "".join(
        f'pub mod {name} {{ pub mod v1 {{ include!("{path}"); }} }}\n' for name, path in modules.items()
    )
    (tmp_path / "lib.rs").write_text(
        f"pub mod peripety {{ pub mod api {{\n{source}}} }}\n{RUST_CLIENT}", "utf-8"
    )
    (tmp_path / "Cargo.toml").write_text(RUST_CRATE, encoding="utf-8")
    run("cargo", "check", "--quiet", folder=tmp_path, CARGO_TARGET_DIR=str(CLIENTS / "rust" / "target"))


def test_java_stubs_compile(tmp_path: Path) -> None:
    needs_all_clients("Java")
    needs("Java", "mvn", "javac")
    (tools := tmp_path / "tools").mkdir()
    platform = {"x86_64": "linux-x86_64", "aarch64": "linux-aarch_64"}[os.uname().machine]
    for name, artifact in JAVA_PLUGINS.items():
        copy = ("dependency:copy", f"-Dartifact={artifact}:exe:{platform}", f"-DoutputDirectory={tools}")
        run("mvn", "-q", "-B", *copy, "-Dmdep.stripVersion=true", folder=tmp_path)
        next(tools.glob(f"{name}-linux*.exe")).rename(tools / name)
        (tools / name).chmod(0o755)
    with build_lock("java"):
        run(
            "mvn",
            "-q",
            "-B",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            folder=CLIENTS / "java",
        )
    stubs = generate("java", tmp_path, tools) / "target" / "stubs"
    (tmp_path / "sources").write_text("\n".join(map(str, stubs.rglob("*.java"))), encoding="utf-8")
    libraries = f"{CLIENTS}/java/target/dependency/*"
    run("javac", "-nowarn", "-cp", libraries, "-d", tmp_path / "classes", "@sources", folder=tmp_path)
    assert (tmp_path / "classes/peripety/api/session/v1/SessionServiceGrpc.class").exists()


def test_csharp_stubs_are_generated(tmp_path: Path) -> None:
    needs("C#", "protoc", "grpc_csharp_plugin")
    stubs = files(generate("csharp", tmp_path) / "build" / "stubs", ".cs")
    assert "class SessionServiceClient" in stubs["Session/V1/SessionGrpc.cs"]
    assert "class TurnEvent" in stubs["Session/V1/Session.cs"]


def test_csharp_stubs_compile() -> None:
    needs_all_clients("C#")
    needs("C#", "dotnet")
    run("dotnet", "build", "--nologo", folder=CLIENTS / "csharp" / "api")


def test_every_client_of_a_language_has_its_file() -> None:
    found = {path.parent.name for path in CLIENTS.glob("*/buf.gen.yaml")}
    assert found == {"csharp", "go", "java", "python", "rust", "typescript"}
