"""Ranges of IP addresses in CIDR notation, as hosts of ACLs (Kafka 4.4 ``CidrUtils``, KIP-1276)."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, NamedTuple

_IPV4: Final = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})/([0-9]{1,2})")
_IPV6: Final = re.compile(r"(\[[^\]]*\]|[^/\[\]]*)/\+?([0-9]{1,4})")
_BITS: Final = {4: 32, 6: 128}
_BYTE_MAX: Final = 255


class AddressRange(NamedTuple):
    """The addresses of a version from ``first`` to ``last``, as numbers."""

    version: int
    first: int
    last: int


def is_range(host: str) -> bool:
    """Whether a host of an ACL is to be a range."""
    return "/" in host


def parse_range(text: str) -> AddressRange:
    """The range ADDRESS/PREFIX. Bits of the address behind the prefix count as zeros. Raises ValueError."""
    address, prefix = _parse_ipv6(text) if ":" in text else _parse_ipv4(text)
    bits = _BITS[address.version]
    if prefix > bits:
        raise ValueError(f"prefix length: found {prefix}, expected 0 to {bits}")
    size = 1 << (bits - prefix)
    first = int(address) // size * size
    return AddressRange(address.version, first, first + size - 1)


def range_contains(text: str, host: str) -> bool:
    """Whether a client's address is in a range. False if either text is malformed. 0.0.0.0 is in no range."""
    if not is_range(text):
        return False
    addresses, address = _range(text), _address(host)
    if addresses is None or address is None or address.version != addresses.version:
        return False
    number = int(address)
    return addresses.first <= number <= addresses.last and (address.version, number) != (4, 0)


@lru_cache(maxsize=4096)
def _range(text: str) -> AddressRange | None:
    try:
        return parse_range(text)
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return IPv6Address(host.partition("%")[0]) if ":" in host else IPv4Address(host)
    except AddressValueError:
        return None


def _parse_ipv4(text: str) -> tuple[IPv4Address, int]:
    match = _IPV4.fullmatch(text)
    if match is None:
        raise ValueError(f"found {text!r}, expected an IPv4 address and a prefix length")
    *parts, prefix = map(int, match.groups())
    if max(parts) > _BYTE_MAX:
        raise ValueError(f"found {max(parts)} in the address, expected 0 to {_BYTE_MAX}")
    return IPv4Address(bytes(parts)), prefix


def _parse_ipv6(text: str) -> tuple[IPv6Address, int]:
    match = _IPV6.fullmatch(text)
    if match is None:
        raise ValueError(f"found {text!r}, expected an IPv6 address and a prefix length")
    address = IPv6Address(match[1].strip("[]").partition("%")[0])
    if address.ipv4_mapped is not None:
        raise ValueError(f"found the IPv4 address {address.ipv4_mapped} in IPv6 notation, expected an IPv6 address")
    return address, int(match[2])
