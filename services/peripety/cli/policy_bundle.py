"""`peripety policy new-key`, `export` and `import`: signed policies."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.cli.options import Server
from peripety.cli.output import one_line, require_writable, result_console, save_file
from peripety.cli.policy_author import POLICY_FILE, policy_input, require_folder
from peripety.cli.policy_check import Policy, policies_at
from peripety.engine import compile_policy
from peripety.errors import InvalidArgumentError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


commands = typer.Typer()

TrustedKeys = Annotated[
    list[Path] | None,
    typer.Option(
        "--trust",
        metavar="KEY",
        help="Public key of a trusted author, one of whom must have signed the policy; may be repeated. "
        "[default: no signature]",
    ),
]


def _require_signatures() -> Any:
    """Return the module of signed policies.

    Raises:
        UnsupportedError: the library of signatures is not installed.
    """
    try:
        from peripety.policy.enforcement import signed_bundle  # noqa: PLC0415 - the library is an extra
    except ImportError as error:
        raise UnsupportedError(
            f"signed policies need a library ({error.name} is missing); run pip install 'peripety[mcp]'"
        ) from None
    return signed_bundle


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArgumentError(f"cannot read {path}: {error.strerror}", code="FILE_INVALID") from None


def policy_reader(trusted: Sequence[Path] | None) -> Callable[[bytes], Any]:
    """Return the function that compiles the content of a policy file.

    Args:
        trusted: the files of the public keys of which one must have signed it; empty to read a document.
    """
    if not trusted:
        return compile_policy
    signed = _require_signatures()
    keys = [signed.read_public_key(_read(path)) for path in trusted]
    read: Callable[[bytes], Any] = signed.TrustedPolicyReader(keys).read
    return read


async def _fetch_document(policy: pb.PolicySource, server: str | None) -> bytes:
    if policy.document:
        return policy.document
    async with policies_at(server) as stub:
        found = await stub.GetPolicy(pb.GetPolicyRequest(policy_id=policy.policy_id))
    return found.policy.document


@commands.command()
def new_key(
    out: Annotated[
        Path, typer.Argument(metavar="KEY", help="File for the private key; KEY.pub is the other.")
    ],
) -> None:
    """Make an Ed25519 key that signs policies.

    Only its owner can read the private key (mode 0600). Give the public key, KEY.pub, to each enforcement
    point.
    """
    private, public = _require_signatures().make_keys()
    shared = out.with_name(f"{out.name}.pub")
    if shared.exists():
        raise typer.BadParameter(f"{shared} exists already; choose another file")
    try:
        handle = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise typer.BadParameter(f"cannot write {out}: {error.strerror}") from None
    with os.fdopen(handle, "wb") as file:
        file.write(private)
    save_file(public, shared)
    result_console().print(f"private key: {out}; public key: {shared}")


@commands.command("export")
def export_(
    policy: Policy,
    key: Annotated[Path, typer.Option("--key", metavar="KEY", help="Private key, see `new-key`.")],
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the policy, the same in all of its versions.")
    ],
    version: Annotated[int, typer.Option(min=1, metavar="N", help="Version, higher than the one before.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Write the bundle to this file.")],
    server: Server = None,
) -> None:
    """Sign a policy, and write it with its version and hashes as one file."""
    require_writable(out)
    signed = _require_signatures()
    private = signed.read_private_key(_read(key))
    document = asyncio.run(_fetch_document(policy_input(policy).policy, server))
    compiled = compile_policy(document)
    save_file(signed.sign_policy(compiled, name, version, private) + b"\n", out)
    result_console().print(
        f"{one_line(name)}, version {version}, policy {compiled.policy_hash}, signed by"
        f" {signed.describe_key(private.public_key())}"
    )


@commands.command("import")
def import_(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Signed policy, see `export`.")],
    trust: TrustedKeys = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Write policy.json to this folder. [default: no folder]"
        ),
    ] = None,
) -> None:
    """Verify a signed policy, and show its version.

    Exit code 2 if no trusted key signed it, or if it was changed; then nothing is written.
    """
    require_folder(out)
    if not trust:
        raise typer.BadParameter("--trust KEY is required: the public key of the author")
    signed = _require_signatures()
    opened = signed.open_bundle(_read(bundle), [signed.read_public_key(_read(path)) for path in trust])
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        save_file(opened.policy.document + b"\n", out / POLICY_FILE)
    result_console().print(
        f"{one_line(opened.name)}, version {opened.version}, policy {opened.policy.policy_hash}, signed by"
        f" {opened.key_id}"
    )
