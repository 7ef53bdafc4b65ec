"""JAAS configurations: login modules and their options, as ``sasl.jaas.config`` or a section of a file has them.

org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="..." user_admin="...";
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kframe.errors import ConfigError

#: Bytes of the largest JAAS file that is read.
FILE_BYTES_MAX: Final = 1 << 20
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign>[={};])|(?P<word>[^\s={};"']+)""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Login:
    """One login module: the class behind its last dot, and its options, which are secrets."""

    module: str
    options: Mapping[str, str] = field(repr=False)


def read_entries(where: str, text: str) -> list[Login]:
    """The login modules of a text such as ``sasl.jaas.config``. Raises ConfigError, which shows nothing of it."""
    tokens = _tokens(where, text)
    entries = []
    while tokens:
        entries.append(_entry(where, tokens))
    return entries


def read_section(path: Path, *names: str) -> list[Login]:
    """The login modules in the first of these sections that a JAAS file has; none if it has none of them.

    Raises ConfigError, which shows nothing of the file.
    """
    where = f"JAAS file {path}"
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX)
        tokens = _tokens(where, raw.decode("utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(where, f"no text that can be read ({type(problem).__name__})", "a JAAS file") from None
    sections = {}
    while tokens:
        name = tokens.pop(0)
        _expect(where, tokens, "{")
        entries = []
        while tokens and tokens[0] != "}":
            entries.append(_entry(where, tokens))
        _expect(where, tokens, "}")
        _expect(where, tokens, ";")
        sections[name] = entries
    return next((sections[name] for name in names if name in sections), [])


def _entry(where: str, tokens: list[str]) -> Login:
    """One module, taken from the front of ``tokens``."""
    module = tokens.pop(0)
    if not tokens or tokens.pop(0).lower() not in _FLAGS:
        raise ConfigError(where, "a login module without a flag", f"one of {', '.join(_FLAGS)} behind its name")
    options = {}
    while tokens and tokens[0] != ";":
        name = tokens.pop(0)
        _expect(where, tokens, "=")
        if not tokens or tokens[0] in tuple("={};"):
            raise ConfigError(where, "an option without a value", 'NAME="VALUE"')
        options[name] = tokens.pop(0)
    _expect(where, tokens, ";")
    return Login(module.rpartition(".")[2], options)


def _expect(where: str, tokens: list[str], sign: str) -> None:
    if not tokens or tokens.pop(0) != sign:
        raise ConfigError(where, f"no {sign!r} where one belongs", 'MODULE required NAME="VALUE" ...;')


def _tokens(where: str, text: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ConfigError(where, "a quotation without an end", 'NAME="VALUE"')
        if found["text"]:
            tokens.append(re.sub(r"\\(.)", r"\1", found["text"][1:-1], flags=re.DOTALL))
        elif found["sign"] or found["word"]:
            tokens.append(found[0])
        at = found.end()
    return tokens
