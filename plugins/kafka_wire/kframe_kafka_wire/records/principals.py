"""Principals as Kafka names them, and their names from certificates (``ssl.principal.mapping.rules``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kframe.plugin import ConfigError

_RULES_KEY: Final = "ssl.principal.mapping.rules"
#: Java's abbreviations of the attributes of a name (RFC 2253).
_SHORT: Final[Mapping[str, str]] = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_RULE: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")
_SPECIAL: Final = re.compile(r'([,+"\\<>;])')


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated principal; ``User:ANONYMOUS`` if there was no authentication."""

    name: str
    kind: str = "User"
    by_token: bool = field(default=False, compare=False)
    """Whether it was authenticated by a delegation token."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal("ANONYMOUS")


def parse_principal(text: str) -> Principal:
    """Parse TYPE:NAME (``SecurityUtils.parseKafkaPrincipal``). Raises ValueError."""
    kind, separator, name = text.partition(":")
    if not (kind and separator):
        raise ValueError(f"principal: found {text!r}, expected TYPE:NAME")
    return Principal(name, kind)


#: Maps the text of a subject to the name of a principal.
NameMapper = Callable[[str], str]


def distinguished_name(certificate: Mapping[str, Any]) -> str:
    """The subject of a certificate (``SSLSocket.getpeercert``) in the format of Java's X500Principal: last attribute
    first."""
    parts = []
    for part in reversed(certificate.get("subject", ())):
        texts = [f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in part]
        parts.append("+".join(texts))
    return ",".join(parts)


def _escaped(value: str) -> str:
    text = _SPECIAL.sub(r"\\\1", value)
    if text.startswith(("#", " ")):
        text = "\\" + text
    return text[:-1] + "\\ " if text.endswith(" ") and len(text) > 1 else text


def name_mapper(rules: str) -> NameMapper:
    """Parse ``ssl.principal.mapping.rules``. Raises ConfigError.

    The first rule that matches the whole name rewrites it. ``/L`` and ``/U`` change its case, and DEFAULT keeps it. A
    name without a matching rule is kept, where Kafka throws.
    """
    parsed_rules = []
    position, text = 0, rules.strip() or "DEFAULT"
    while position < len(text):
        match = _RULE.match(text, position)
        if match is None or match.end() == position:
            raise ConfigError(
                f"config key {_RULES_KEY}", repr(text[position:]), "DEFAULT or RULE:PATTERN/REPLACEMENT/[LU]"
            )
        parsed_rules.append(_rule(match))
        position = match.end()

    def mapped(name: str) -> str:
        return next((new for rule in parsed_rules if (new := rule(name)) is not None), name)

    return mapped


def _rule(rule: re.Match[str]) -> Callable[[str], str | None]:
    if rule[1]:
        return lambda name: name
    try:
        pattern = re.compile(rule[2])
        replacement = re.sub(r"\$(\d)", r"\\\1", rule[3])
    except re.error as error:
        raise ConfigError(f"config key {_RULES_KEY}", repr(rule[2]), f"a pattern ({error})") from error
    case = rule[4]

    def apply(name: str) -> str | None:
        match = pattern.fullmatch(name)
        if match is None:
            return None
        new = match.expand(replacement)
        return new.lower() if case == "L" else new.upper() if case == "U" else new

    return apply
