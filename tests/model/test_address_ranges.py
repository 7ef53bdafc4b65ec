"""Ranges of addresses in CIDR notation. Each answer is that of Kafka 4.4.0's ``CidrUtils``."""

from __future__ import annotations

from typing import Final

import pytest

from kframe.model.address_ranges import parse_range, range_contains

CLIENTS: Final = (
    "10.1.2.3",
    "10.0.0.0",
    "10.255.255.255",
    "10.0.0.7",
    "10.0.0.6",
    "11.0.0.0",
    "0.0.0.0",
    "2001:db8:0:0:0:0:0:1",
    "2001:db9:0:0:0:0:0:1",
    "0:0:0:0:0:0:0:1",
    "fe80:0:0:0:0:0:0:1%eth0",
)
TEN: Final = {"10.1.2.3", "10.0.0.0", "10.255.255.255", "10.0.0.7", "10.0.0.6"}
DB8: Final = {"2001:db8:0:0:0:0:0:1"}
RANGES: Final = [
    ("10.0.0.0/8", TEN),
    ("10.1.2.3/8", TEN),
    ("010.0.0.0/08", TEN),
    ("10.0.0.0/32", {"10.0.0.0"}),
    ("10.0.0.7/31", {"10.0.0.7", "10.0.0.6"}),
    ("0.0.0.0/0", TEN | {"11.0.0.0"}),
    ("0.0.0.0/8", set()),
    ("2001:db8::/32", DB8),
    ("2001:DB8::/032", DB8),
    ("2001:db8::1/128", DB8),
    ("::/0", {client for client in CLIENTS if ":" in client}),
    ("[::1]/128", {"0:0:0:0:0:0:0:1"}),
    ("fe80::1%eth0/64", {"fe80:0:0:0:0:0:0:1%eth0"}),
]
MALFORMED: Final = [
    "10.0.0.0/33",
    "10.0.0/8",
    "/8",
    "/",
    "10.0.0.0/",
    "256.0.0.0/8",
    "10.0.0.0/-1",
    "10.0.0.0/8/8",
    " 10.0.0.0/8",
    "10.0.0.0/8 ",
    "10.0.0.0/255.0.0.0",
    "10.0.0.0/1e",
    "2001:db8::1/129",
    "2001:db8::/",
    "2001:db8:0:0:0:0:0:0:0/32",
    "::ffff:10.0.0.1/128",
    "a:b/32",
    ":/8",
    "host/8",
]


@pytest.mark.parametrize(("text", "members"), RANGES)
def test_addresses_of_a_range(text: str, members: set[str]) -> None:
    parse_range(text)
    assert {client for client in CLIENTS if range_contains(text, client)} == members


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_range_has_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match=r"found|expected|Expected|permitted|most|least|Only"):
        parse_range(text)
    assert not any(range_contains(text, client) for client in CLIENTS)


@pytest.mark.parametrize(("text", "client"), [("10.1.2.3", "10.1.2.3"), ("10.0.0.0/8", "host"), ("10.0.0.0/8", "")])
def test_other_texts_are_in_no_range(text: str, client: str) -> None:
    assert not range_contains(text, client)
