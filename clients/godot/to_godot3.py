"""Derives the Godot 3 form of files that are written for Godot 4: scripts, scenes and the project file.

    python to_godot3.py SOURCE... TARGET    write the files into the folder TARGET

It knows the differences that occur in `protocol.gd`, the samples and the tests, and no others.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_CHANGES = [
    (r"\bextends RefCounted\b", "extends Reference"),
    (r"\bPackedByteArray\b", "PoolByteArray"),
    (r"\bPackedStringArray\b", "PoolStringArray"),
    (r"\bJSON\.parse_string\(", "parse_json("),
    (r"\bJSON\.stringify\(", "to_json("),
    (r"\bTime\.get_ticks_msec\(", "OS.get_ticks_msec("),
    (r"\.uri_encode\(", ".percent_encode("),
    (r"TLSOptions\.client\(\) if is_tls else null", "is_tls"),
    (r"\b(\w+)\.(\w+)\.connect\((\w+)\)", r'\1.connect("\2", self, "\3")'),
    (r"\bFileAccess\.get_file_as_string\(", "_read_text("),
    (r"config_version=5", "config_version=4"),
    (r"format=3\b", "format=2"),
    (r' id="(\d+)"\]', r" id=\1]"),
    (r'ExtResource\("(\d+)"\)', r"ExtResource( \1 )"),
]
_READ_TEXT = """

func _read_text(path):
	var file = File.new()
	file.open(path, File.READ)
	return file.get_as_text()
"""


def converted(text: str) -> str:
    """Return the Godot 3 form of a text."""
    for pattern, replacement in _CHANGES:
        text = re.sub(pattern, replacement, text)
    return text + _READ_TEXT if "_read_text(" in text else text


def main() -> None:
    """Convert the files that the command line names."""
    *sources, target = map(Path, sys.argv[1:])
    if not sources:
        sys.exit("usage: to_godot3.py SOURCE... TARGET")
    target.mkdir(parents=True, exist_ok=True)
    for source in sources:
        (target / source.name).write_text(converted(source.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
