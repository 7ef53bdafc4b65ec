"""JAAS configurations, as ``sasl.jaas.config`` or a section of a JAAS file contains them.

org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="..." user_admin="...";
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kframe.errors import ConfigError

#: Larger JAAS files are not read to their end.
FILE_BYTES_MAX: Final = 1 << 20
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign>[={};])|(?P<word>[^\s={};"']+)""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A login module: the name of its class without the package, and its options, which are secret."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def parse_login_modules(where: str, text: str) -> list[LoginModule]:
    """Parse a value of ``sasl.jaas.config``. Raises ConfigError, which shows nothing of the text."""
    tokens = _tokenize(where, text)
    modules = []
    while tokens:
        modules.append(_parse_module(where, tokens))
    return modules


def read_login_modules(path: Path, *sections: str) -> list[LoginModule] | None:
    """Read the login modules in the first of ``sections`` that a JAAS file has; None if it has none of them.

    Raises ConfigError, which shows nothing of the file.
    """
    where = f"JAAS file {path}"
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX)
        tokens = _tokenize(where, raw.decode("utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(where, f"no text that can be read ({type(problem).__name__})", "a JAAS file") from None
    modules: dict[str, list[LoginModule]] = {}
    while tokens:
        name = tokens.pop(0)
        _expect(where, tokens, "{")
        modules[name] = []
        while tokens and tokens[0] != "}":
            modules[name].append(_parse_module(where, tokens))
        _expect(where, tokens, "}")
        _expect(where, tokens, ";")
    return next((modules[name] for name in sections if name in modules), None)


def _parse_module(where: str, tokens: list[str]) -> LoginModule:
    """Parse a login module and remove it from the front of ``tokens``."""
    module = tokens.pop(0)
    if not tokens or tokens.pop(0).lower() not in _FLAGS:
        raise ConfigError(where, "a login module without a flag", f"one of {', '.join(_FLAGS)} after its name")
    options = {}
    while tokens and tokens[0] != ";":
        name = tokens.pop(0)
        _expect(where, tokens, "=")
        if not tokens or tokens[0] in tuple("={};"):
            raise ConfigError(where, "an option without a value", 'NAME="VALUE"')
        options[name] = tokens.pop(0)
    _expect(where, tokens, ";")
    return LoginModule(module.rpartition(".")[2], options)


def _expect(where: str, tokens: list[str], sign: str) -> None:
    if not tokens or tokens.pop(0) != sign:
        raise ConfigError(where, f"no {sign!r} where one belongs", 'MODULE required NAME="VALUE" ...;')


def _tokenize(where: str, text: str) -> list[str]:
    tokens, offset = [], 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            raise ConfigError(where, "an unterminated quoted text", 'NAME="VALUE"')
        if match["text"]:
            tokens.append(re.sub(r"\\(.)", r"\1", match["text"][1:-1], flags=re.DOTALL))
        elif match["sign"] or match["word"]:
            tokens.append(match[0])
        offset = match.end()
    return tokens
