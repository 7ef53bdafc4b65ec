"""Entry points of installed distributions, read as little as a list of commands needs.

``importlib.metadata`` imports the parsers of e-mail and zip files, a tenth of the time of ``kframe --help``. It reads
the entry points only where an entry of ``sys.path`` is a file. Format:
https://packaging.python.org/en/latest/specifications/entry-points/
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

#: The folder of a distribution's metadata. The name ends before the first hyphen.
_METADATA: Final = re.compile(r"([^-]+)(?:-.*)?\.(?:dist|egg)-info", re.IGNORECASE)
_SEPARATORS: Final = re.compile(r"[-_.]+")


def entry_points(group: str) -> list[tuple[str, str]]:
    """The names and the objects (``MODULE`` or ``MODULE:ATTRIBUTE``) of a group, of all distributions."""
    if any(os.path.isfile(path) for path in sys.path):
        from importlib import metadata

        return [(point.name, point.value) for point in metadata.entry_points(group=group)]
    return [pair for text in _files() for pair in _section(text, group)]


def load(reference: str) -> Any:
    """The object of an entry point."""
    module, _, attributes = reference.partition("[")[0].strip().partition(":")
    loaded: Any = import_module(module.strip())
    for attribute in filter(None, attributes.strip().split(".")):
        loaded = getattr(loaded, attribute)
    return loaded


def _files() -> Iterator[str]:
    """The entry points of each distribution. The first of a name on the path counts, as for imports."""
    distributions: set[str] = set()
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            match = _METADATA.fullmatch(name)
            distribution = "" if match is None else _SEPARATORS.sub("_", match[1]).lower()
            if match is None or distribution in distributions:
                continue
            distributions.add(distribution)
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                    yield file.read()
            except OSError:
                continue  # a distribution without entry points


def _section(text: str, group: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif section == group and line and line[0] != "#":
            name, _, reference = line.partition("=")
            yield name.strip(), reference.strip()
