"""Environment of a task: a directory scan by reading files; nothing is executed.

The result has the programming languages, the tools that the task prohibits, and an outline of each file:
functions with parameters, keys, columns and headings. Of files that may hold secrets, only the names are
disclosed.
"""

from __future__ import annotations

import ast
import csv
import json
import os
import platform
import re
import shutil
import tomllib
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.errors import InvalidArgumentError
from peripety.testgen.types import FilePreview, TaskEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_LANGUAGE_BY_SUFFIX = {
    ".c": "C",
    ".cc": "C++",
    ".cpp": "C++",
    ".cs": "C#",
    ".go": "Go",
    ".java": "Java",
    ".js": "JavaScript",
    ".jsx": "JavaScript",
    ".kt": "Kotlin",
    ".php": "PHP",
    ".pl": "Perl",
    ".py": "Python",
    ".r": "R",
    ".rb": "Ruby",
    ".rs": "Rust",
    ".sh": "shell",
    ".sql": "SQL",
    ".swift": "Swift",
    ".ts": "TypeScript",
    ".tsx": "TypeScript",
}
_GO_VERSION = re.compile(r"^go\s+(\S+)", re.MULTILINE)
_MAX_MANIFEST_BYTES = 64 * 1024


def detect_languages(directory: Path, files: Sequence[Path]) -> tuple[str, ...]:
    """Return the languages, most frequent first, with the version that a manifest requires."""
    counts = Counter(
        _LANGUAGE_BY_SUFFIX[path.suffix.lower()]
        for path in files
        if path.suffix.lower() in _LANGUAGE_BY_SUFFIX
    )
    versions = _manifest_versions(directory)
    for language in versions:
        counts.setdefault(language, 0)
    ordered = sorted(counts, key=lambda language: (-counts[language], language))
    return tuple(f"{language} {versions.get(language, '')}".strip() for language in ordered)


def _manifest_versions(directory: Path) -> dict[str, str]:
    found = {}
    project = _read_toml(directory / "pyproject.toml").get("project")
    if isinstance(project, dict) and isinstance(project.get("requires-python"), str):
        found["Python"] = project["requires-python"]
    package = _read_toml(directory / "Cargo.toml").get("package")
    if isinstance(package, dict) and isinstance(package.get("rust-version"), str):
        found["Rust"] = package["rust-version"]
    engines = _read_json(directory / "package.json").get("engines")
    if isinstance(engines, dict) and isinstance(engines.get("node"), str):
        found["JavaScript"] = engines["node"]
    if go := _GO_VERSION.search(_read_text(directory / "go.mod")):
        found["Go"] = go[1]
    return {language: version[:32] for language, version in found.items()}


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_MANIFEST_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        return ""


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_read_text(path))
    except (ValueError, RecursionError):
        return {}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_read_text(path) or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


# All repetitions are bounded or possessive, so the time is linear in the length of the description.
_TOOL_PATTERN = r"[`'\"]?(?<!\w)[A-Za-z][\w.+-]{0,63}+[`'\"]?"
_TOOL_LIST_PATTERN = (
    rf"(?P<tools>{_TOOL_PATTERN}"
    rf"(?:\s*,\s*(?:or\s+|and\s+)?{_TOOL_PATTERN}|\s+(?:or|and|nor)\s+{_TOOL_PATTERN}){{0,50}})"
)
_FORBIDS = r"(?:do|must|may|should|shall)\s+not|don't|cannot|never"
_USE = r"use|call|run|import|invoke|install"
_USING = r"using|calling|running|importing|invoking|installing"
_FORBIDDEN = r"not\s+allowed|forbidden|prohibited|banned|disallowed|off\s+limits"
_PROHIBITION_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:{_FORBIDS})\s+(?:{_USE})\s+(?:the\s+|any\s+)?{_TOOL_LIST_PATTERN}",
        rf"without\s+(?:{_USING})\s+(?:the\s+|any\s+)?{_TOOL_LIST_PATTERN}",
        rf"{_TOOL_LIST_PATTERN}\s+(?:is|are)\s+(?:{_FORBIDDEN})",
        rf"(?:{_FORBIDDEN})(?:\s+tools?)?\s*:\s*{_TOOL_LIST_PATTERN}",
    )
)
_SEPARATOR = re.compile(r"\s*,\s*(?:or\s+|and\s+)?|\s+(?:or|and|nor)\s+", re.IGNORECASE)
_NON_TOOL_WORDS = frozenset(
    {
        *("a", "an", "any", "it", "its", "that", "the", "their", "them", "these", "this", "those", "to"),
        *("external", "internet", "libraries", "library", "module", "modules", "network", "other"),
        *("package", "packages", "third-party", "tool", "tools", "you", "your"),
    },
)


def find_prohibited_tools(description: str) -> tuple[str, ...]:
    """Return the prohibited tools in order of appearance, each once."""
    found: dict[str, None] = {}
    for sentence in _PROHIBITION_PATTERNS:
        for match in sentence.finditer(description):
            for word in _SEPARATOR.split(match["tools"]):
                tool = word.strip("`'\".")
                if tool and tool.lower() not in _NON_TOOL_WORDS:
                    found.setdefault(tool)
    return tuple(sorted(found, key=description.find))


_SECRET_FILE_PATTERN = re.compile(
    r"""
      .*\.env(\..*)? | .*\.(pem|key|p12|pfx|jks|keystore|kdbx|gpg|asc|ovpn)
    | id_(rsa|dsa|ecdsa|ed25519)(\..*)? | \.?(netrc|pgpass|htpasswd|npmrc|pypirc|git-credentials)
    | .*(secret|credential|password|passwd|token|apikey|api_key|private).*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SOURCE_SUFFIXES = frozenset(
    {".py", ".js", ".ts", ".go", ".rs", ".java", ".c", ".cc", ".cpp", ".h", ".rb", ".r", ".md"},
)


def may_hold_secrets(path: Path) -> bool:
    """Return True if a file may hold secrets, by its name and folders; source code does not count.

    Args:
        path: its path in the directory.
    """
    is_named = any(map(_SECRET_FILE_PATTERN.fullmatch, path.parts))
    return is_named and (path.suffix.lower() not in _SOURCE_SUFFIXES or path.name.startswith(".env"))


_MAX_ENTRIES = 60
_MAX_ENTRY_LENGTH = 200
_CODE_PATTERN = re.compile(
    r"""^[^\S\n]*(?:export\s+|default\s+|pub(?:\([^)]*\))?\s+|public\s+|private\s+|protected\s+|static\s+|async\s+)*
    (?P<kind>function|func|fn|class|interface|struct|enum|trait|type|def|impl|module|package)\s+
    (?P<name>[A-Za-z_$][\w$]*(?:\.[A-Za-z_]\w*)?)\s*(?P<rest>\([^)\n]{0,120}\))?""",
    re.MULTILINE | re.VERBOSE,
)
_ASSIGNMENT_PATTERN = re.compile(r"^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=", re.MULTILINE)
_HEADING_PATTERN = re.compile(r"^#{1,3}[^\S\n]+(\S.*)$", re.MULTILINE)
_YAML_KEY_PATTERN = re.compile(r"^([A-Za-z_][\w.-]*)\s*:", re.MULTILINE)
_TABLE_PATTERN = re.compile(
    r"create\s+table\s+(?:if\s+not\s+exists\s+)?([\w.\"`]+)\s*\(([^;]{0,4000})\)",
    re.IGNORECASE,
)
_SECTION_PATTERN = re.compile(r"^\[([^\]\n]+)\]\s*$", re.MULTILINE)


def outline_of(name: str, text: str) -> tuple[str, ...]:
    """Return the outline of a file, at most 60 entries of 200 characters; empty for unknown kinds.

    Args:
        name: the file name.
        text: its content, or the beginning of it.
    """
    suffix = name.rpartition(".")[2].lower()
    look = _OUTLINERS.get(suffix)
    if look is None:
        return ()
    try:
        return tuple(entry[:_MAX_ENTRY_LENGTH] for entry in islice(look(text), _MAX_ENTRIES))
    except (ValueError, RecursionError, MemoryError, SyntaxError, csv.Error):
        return ()


def _python_outline(text: str) -> Iterator[str]:
    for node in ast.parse(text).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield f"def {node.name}({ast.unparse(node.args)})"
            case ast.ClassDef():
                yield f"class {node.name}"
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                        yield f"def {node.name}.{inner.name}({ast.unparse(inner.args)})"
            case ast.Import() | ast.ImportFrom():
                yield ast.unparse(node)
            case ast.Assign(targets=[ast.Name(id=assigned)]) if assigned.isupper():
                yield assigned
        yield from _command_line_options(node)


def _command_line_options(node: ast.AST) -> Iterator[str]:
    """Yield the command-line options that a program declares."""
    for call in ast.walk(node):
        match call:
            case ast.Call(func=ast.Attribute(attr="add_argument" | "add_option" | "option")):
                names = [one.value for one in call.args if isinstance(one, ast.Constant)]
                yield from (f"parameter {name}" for name in names if isinstance(name, str))


def _code_outline(text: str) -> Iterator[str]:
    for found in _CODE_PATTERN.finditer(text):
        yield f"{found['kind']} {found['name']}{found['rest'] or ''}"


def _json_outline(text: str) -> Iterator[str]:
    yield from _iter_keys(json.loads(text))


def _json_lines_outline(text: str) -> Iterator[str]:
    yield from _iter_keys(json.loads(text.partition("\n")[0]))


def _toml_outline(text: str) -> Iterator[str]:
    yield from _iter_keys(tomllib.loads(text))


def _iter_keys(value: Any) -> Iterator[str]:
    """Yield the keys of an object, and of the objects in it."""
    if isinstance(value, list):
        yield f"array of {len(value)}"
        value = value[0] if value else None
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"key {key}"
            if isinstance(inner, dict):
                yield from (f"key {key}.{name}" for name in inner)


def _columns_outline(text: str) -> Iterator[str]:
    first = text.partition("\n")[0]
    delimiter = "\t" if "\t" in first else ";" if first.count(";") > first.count(",") else ","
    for column in next(csv.reader([first], delimiter=delimiter), ()):
        yield f"column {column.strip()}"


def _headings_outline(text: str) -> Iterator[str]:
    for found in _HEADING_PATTERN.finditer(text):
        yield f"heading {found[1].rstrip().rstrip('#').rstrip()}"


def _sql_outline(text: str) -> Iterator[str]:
    for found in _TABLE_PATTERN.finditer(text):
        yield f"table {found[1]}({' '.join(found[2].split())})"


def _pattern_outline(what: str, pattern: re.Pattern[str]) -> Callable[[str], Iterator[str]]:
    return lambda text: (f"{what} {found[1]}" for found in pattern.finditer(text))


_OUTLINERS: dict[str, Callable[[str], Iterator[str]]] = {
    "py": _python_outline,
    "json": _json_outline,
    "jsonl": _json_lines_outline,
    "toml": _toml_outline,
    "csv": _columns_outline,
    "tsv": _columns_outline,
    "sql": _sql_outline,
    "md": _headings_outline,
    "yaml": _pattern_outline("key", _YAML_KEY_PATTERN),
    "yml": _pattern_outline("key", _YAML_KEY_PATTERN),
    "sh": _pattern_outline("variable", _ASSIGNMENT_PATTERN),
    "ini": _pattern_outline("section", _SECTION_PATTERN),
    "cfg": _pattern_outline("section", _SECTION_PATTERN),
    **dict.fromkeys(
        (
            "js",
            "jsx",
            "ts",
            "tsx",
            "go",
            "rs",
            "java",
            "kt",
            "rb",
            "c",
            "cc",
            "cpp",
            "h",
            "php",
            "swift",
            "cs",
        ),
        _code_outline,
    ),
}


MAX_FILES = 100
"""Maximum number of inspected files; those nearest to the top come first."""

MAX_PREVIEW_BYTES = 2 * 1024
"""Maximum size of a file preview."""

_MAX_READ_BYTES = 256 * 1024
_MAX_SCANNED_FILES = 20_000
_SKIPPED_DIRECTORIES = frozenset(
    {"node_modules", "__pycache__", "target", "build", "dist", "venv", "site-packages"},
)
_KNOWN_TOOLS = (
    *("awk", "bash", "bzip2", "cargo", "cc", "cmake", "curl", "docker", "find", "gcc", "git", "go", "grep"),
    *(
        "gzip",
        "java",
        "javac",
        "jq",
        "make",
        "mvn",
        "node",
        "npm",
        "openssl",
        "perl",
        "pip",
        "psql",
        "python3",
    ),
    *(
        "R",
        "redis-cli",
        "rsync",
        "ruby",
        "rustc",
        "sed",
        "sqlite3",
        "ssh",
        "tar",
        "unzip",
        "wget",
        "xz",
        "zip",
    ),
)


def scan_environment(directory: Path, description: str = "") -> TaskEnvironment:
    """Describe a directory, and the machine that it is on.

    Files are read, and nothing is executed. Hidden files and build output are skipped; files that may hold
    secrets are listed by name only.

    Args:
        directory: the directory of the task.
        description: the task, which may name prohibited tools.

    Raises:
        InvalidArgumentError: the path is not a readable directory.
    """
    try:
        os.scandir(directory).close()
    except OSError as error:
        raise InvalidArgumentError(
            f"directory '{directory}' cannot be read ({error.strerror}); choose another one",
            code="NO_SUCH_DIRECTORY",
        ) from None
    seen = [*_iter_files(directory)]
    shown = sorted(seen, key=lambda path: (len(path.relative_to(directory).parts), path))[:MAX_FILES]
    previews = [_preview_file(path, directory) for path in sorted(shown)]
    prohibited = find_prohibited_tools(description)
    available = [tool for tool in _KNOWN_TOOLS if shutil.which(tool) and tool not in prohibited]
    return TaskEnvironment(
        platform=f"{platform.system().lower()}/{platform.machine()}",
        languages=detect_languages(directory, seen),
        available_tools=tuple(available),
        prohibited_tools=prohibited,
        files=tuple(previews),
        file_count=len(seen),
        cpu_count=os.cpu_count() or 0,
        memory_bytes=_memory_bytes(),
    )


def _iter_files(directory: Path) -> Iterator[Path]:
    """Yield the files of a directory in order, up to a limit."""
    count = 0
    for place, folders, names in os.walk(directory):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _SKIPPED_DIRECTORIES
        )
        for name in sorted(names):
            path = Path(place, name)
            if not name.startswith(".") or may_hold_secrets(Path(name)):
                if path.is_symlink() or not path.is_file():
                    continue
                yield path
                count += 1
                if count == _MAX_SCANNED_FILES:
                    return


def _preview_file(path: Path, directory: Path) -> FilePreview:
    place, size = path.relative_to(directory), path.lstat().st_size
    name = os.fsencode(place.as_posix()).decode(errors="replace")
    if may_hold_secrets(place):
        return FilePreview(name, size)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_READ_BYTES)
    except OSError:
        return FilePreview(name, size)
    try:
        # The limit may split the last character.
        text = content.decode() if size <= _MAX_READ_BYTES else content.decode(errors="ignore")
    except UnicodeDecodeError:
        return FilePreview(name, size)
    if "\0" in text:
        return FilePreview(name, size)
    preview = text.encode()[:MAX_PREVIEW_BYTES].decode(errors="ignore")
    return FilePreview(name, size, preview, outline_of(path.name, text))


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0
