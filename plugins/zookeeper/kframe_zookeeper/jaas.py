"""A user name and password from a JAAS file, the file in which Kafka's brokers keep theirs.

Client {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    username="kafka"
    password="...";
};
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kframe.errors import ConfigError

_COMMENT_OR_TEXT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_OPTION: Final = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
_MODULE: Final = "DigestLoginModule"


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """Who we are by SASL DIGEST-MD5."""

    username: str
    password: str = field(repr=False)


def read_jaas(path: Path, section: str) -> SaslLogin:
    """The login in ``section`` of a JAAS file. Raises ConfigError, which never shows what stands there."""
    where = f"JAAS file {path}"
    try:
        content = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(where, f"no text that can be read ({problem})", "a JAAS file") from None
    content = _COMMENT_OR_TEXT.sub(lambda found: found[1] or " ", content)
    found = re.search(rf'(?<![\w.]){re.escape(section)}\s*\{{((?:[^{{}}"]|"(?:[^"\\]|\\.)*")*)\}}\s*;', content)
    if found is None:
        raise ConfigError(where, f"no section {section}", f"{section} {{ ...{_MODULE} required ...; }};")
    if _MODULE not in found[1].split('"')[0]:
        raise ConfigError(f"{where} section {section}", "another login module", f"{_MODULE}: others are not on offer")
    options = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _OPTION.findall(found[1])}
    if missing := {"username", "password"} - options.keys():
        raise ConfigError(f"{where} section {section}", f"no {min(missing)}", "username and password")
    return SaslLogin(options["username"], options["password"])
