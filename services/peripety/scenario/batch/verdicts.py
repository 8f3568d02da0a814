"""Verdicts of a batch: options, their hash, the verdict of a document, its codec and its caches.

A cache holds the most recent verdicts in memory, or all of them in a file.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from peripety.certification.options import CertificateOptions, DryRunOptions
from peripety.core.lru import LruCache
from peripety.engine import BACKEND_VERSION, RNG_VERSION, DryRunReport
from peripety.errors import Finding, InvalidArgumentError, Severity, filter_errors
from peripety.scenario.types import ValidationLevel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from peripety.errors import PeripetyError


T = TypeVar("T")

MAX_FINDINGS = 50
"""The maximum number of reported findings per document."""

_DRY_RUN_SECONDS = 10.0
_CERTIFICATE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Validation options of each document.

    Attributes:
        level: the validation level.
        dry_run: simulation options, from `Level.DRY_RUN` on.
        certificate: certificate options, at `Level.CERTIFICATE`.
        seconds: the maximum thread time per document; by default 10 s, and 120 s for a certificate. It
            decides whether there is a verdict, never which one.
    """

    level: ValidationLevel = ValidationLevel.STATIC
    dry_run: DryRunOptions = field(default_factory=DryRunOptions)
    certificate: CertificateOptions = field(default_factory=CertificateOptions)
    seconds: float | None = None

    @property
    def time_limit(self) -> float:
        """Return the time limit of one document, in seconds."""
        usual = _CERTIFICATE_SECONDS if self.level is ValidationLevel.CERTIFICATE else _DRY_RUN_SECONDS
        return usual if self.seconds is None else self.seconds


@dataclass(frozen=True, slots=True)
class DocumentVerdict:
    """Result of validating a document.

    Attributes:
        findings: errors first, then warnings; at most `MAX_FINDINGS`.
        total: the number of all findings.
        spec_hash: hash of the content; empty if the document is not acceptable JSON.
        dry_run: the runs without details; None if it was not simulated.
        certificate: the certificate document; None without one.
        error: the reason for a missing verdict, if it is not an error of the document.
    """

    findings: tuple[Finding, ...] = ()
    total: int = 0
    spec_hash: str = ""
    dry_run: DryRunReport | None = None
    certificate: bytes | None = None
    error: PeripetyError | None = None

    @property
    def is_accepted(self) -> bool:
        """Return True if the document passes the requested level."""
        return self.error is None and not filter_errors(self.findings)


Document: TypeAlias = "tuple[T, bytes | DocumentVerdict]"
"""A name chosen by the caller, and the bytes, or the verdict of an unreadable document."""


def build_verdict(
    spec_hash: str,
    findings: Sequence[Finding],
    dry_run: DryRunReport | None = None,
    certificate: bytes | None = None,
) -> DocumentVerdict:
    """Return the verdict for the findings of a document."""
    told = tuple(sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR)[:MAX_FINDINGS])
    counts = replace(dry_run, detail=None) if dry_run and dry_run.detail else dry_run
    return DocumentVerdict(told, len(findings), spec_hash, counts, certificate)


def hash_options(options: BatchOptions) -> str:
    """Return a hash of everything besides the document that determines a verdict."""
    means: dict[str, Any] = {"engine": BACKEND_VERSION, "rng": RNG_VERSION, "level": options.level.name}
    if options.level >= ValidationLevel.DRY_RUN:
        means["dry_run"] = asdict(options.dry_run)
    if options.level >= ValidationLevel.CERTIFICATE:
        means["certificate"] = asdict(options.certificate)
    return hashlib.sha256(json.dumps(means, sort_keys=True).encode()).hexdigest()


def encode_verdict(verdict: DocumentVerdict) -> bytes:
    """Encode a verdict as JSON."""
    record: dict[str, Any] = {"hash": verdict.spec_hash, "total": verdict.total}
    if verdict.findings:
        record["findings"] = [(f.code, f.path, f.message, f.severity.value) for f in verdict.findings]
    if verdict.dry_run:
        record["dry_run"] = _encode_report(verdict.dry_run)
    if verdict.certificate:
        record["certificate"] = verdict.certificate.decode()
    return json.dumps(record, separators=(",", ":")).encode()


def decode_verdict(record: bytes) -> DocumentVerdict:
    """Decode a verdict from JSON."""
    read = json.loads(record)
    findings = tuple(
        Finding(code, path, message, Severity(severity))
        for code, path, message, severity in read.get("findings", ())
    )
    dry_run = DryRunReport.from_json(read["dry_run"]) if "dry_run" in read else None
    certificate = read["certificate"].encode() if "certificate" in read else None
    return DocumentVerdict(findings, read["total"], read["hash"], dry_run, certificate)


def _encode_report(report: DryRunReport) -> dict[str, Any]:
    counts = {name: getattr(report, name) for name in DryRunReport.__slots__}
    return {**counts, "errors": [asdict(error) for error in report.errors]}


_CAPACITY = 4_096
_MAGIC = 0x50455249  # "PERI", identifies a file of this program

_SCHEMA = """
CREATE TABLE IF NOT EXISTS verdicts (asked BLOB, name BLOB, record BLOB, PRIMARY KEY (asked, name))
WITHOUT ROWID
"""
_INSERT = "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)"


class VerdictCache(Protocol):
    """Verdict cache by content hash. All methods are thread-safe."""

    def get_many(self, names: Sequence[bytes]) -> dict[bytes, DocumentVerdict]:
        """Return the cached verdicts, by content hash."""
        ...

    def put_many(self, verdicts: Iterable[tuple[bytes, DocumentVerdict]]) -> None:
        """Store verdicts."""
        ...

    def close(self) -> None:
        """Discard temporary content."""
        ...


def create_cache(options: BatchOptions) -> VerdictCache:
    """Return the cache of one batch; without simulation, validating again is cheaper than a file lookup."""
    return RecentVerdictCache() if options.level <= ValidationLevel.STATIC else SqliteVerdictCache(options)


class RecentVerdictCache:
    """Cache of recent verdicts with findings; others are faster to compute than to look up."""

    def __init__(self) -> None:
        self._verdicts: LruCache[bytes, DocumentVerdict] = LruCache(_CAPACITY)
        self._lock = threading.Lock()

    def get_many(self, names: Sequence[bytes]) -> dict[bytes, DocumentVerdict]:
        """Return the cached verdicts, by content hash."""
        with self._lock:
            found = {name: self._verdicts.get(name) for name in names}
        return {name: verdict for name, verdict in found.items() if verdict is not None}

    def put_many(self, verdicts: Iterable[tuple[bytes, DocumentVerdict]]) -> None:
        """Store verdicts that have findings."""
        with self._lock:
            for name, verdict in verdicts:
                if verdict.findings:
                    self._verdicts.put(name, verdict)

    def close(self) -> None:
        """Discard all verdicts."""
        self._verdicts.clear()


class SqliteVerdictCache:
    """Persistent cache of all verdicts in a SQLite file; committed verdicts survive a crash of the process.

    Args:
        options: validation options; verdicts of other options are ignored.
        path: the file; a temporary one by default.

    Raises:
        InvalidArgumentError: `RESUME_UNUSABLE`, the file is of another program or not writable.
    """

    def __init__(self, options: BatchOptions, path: Path | None = None) -> None:
        self._options_hash = bytes.fromhex(hash_options(options))
        self._lock = threading.Lock()
        try:
            self._database = _open_database(path)
        except sqlite3.Error as error:
            raise _unusable_error(path, str(error)) from None

    def get_many(self, names: Sequence[bytes]) -> dict[bytes, DocumentVerdict]:
        """Return the cached verdicts, by content hash."""
        marks = ",".join("?" * len(names))
        with self._lock:
            rows = self._database.execute(
                f"SELECT name, record FROM verdicts WHERE asked = ? AND name IN ({marks})",  # noqa: S608 - only marks
                (self._options_hash, *names),
            ).fetchall()
        return {name: decode_verdict(record) for name, record in rows}

    def put_many(self, verdicts: Iterable[tuple[bytes, DocumentVerdict]]) -> None:
        """Store verdicts."""
        rows = [(self._options_hash, name, encode_verdict(verdict)) for name, verdict in verdicts]
        with self._lock, self._database:
            self._database.executemany(_INSERT, rows)

    def close(self) -> None:
        """Close the file; a temporary one is removed."""
        with self._lock, suppress(sqlite3.Error):
            self._database.close()


def _open_database(path: Path | None) -> sqlite3.Connection:
    # Threads share the connection under a lock. An empty name is a temporary file that SQLite removes.
    database = sqlite3.connect("" if path is None else path, check_same_thread=False)
    try:
        _require_own_database(database)
        database.execute(f"PRAGMA application_id = {_MAGIC}")
        # A killed process loses no committed data; a power failure loses the last moments.
        database.execute(f"PRAGMA journal_mode = {'OFF' if path is None else 'WAL'}")
        database.execute(f"PRAGMA synchronous = {'OFF' if path is None else 'NORMAL'}")
        database.execute(_SCHEMA)
        database.commit()
    except BaseException:
        database.close()
        raise
    return database


def _require_own_database(database: sqlite3.Connection) -> None:
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (magic,) = database.execute("PRAGMA application_id").fetchone()
    if tables and magic != _MAGIC:
        raise sqlite3.DatabaseError("it is the database of another program")


def _unusable_error(path: Path | None, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{path} cannot store verdicts: {reason}; use a new file, or one of an earlier batch",
        code="RESUME_UNUSABLE",
    )
