"""Every decoded znode, with each kind of malformed content that a parser might misread."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest
from kframe_zookeeper.znodes.strict import ZNODE_BYTES_MAX

from kframe.errors import ZnodeError
from verification.zookeeper.fuzz.znodes import DECODERS


class Kind(NamedTuple):
    """A kind of znode by the name of its decoder, its content as Kafka writes it, and one number in it with its key."""

    name: str
    raw: bytes
    number: bytes

    def __str__(self) -> str:
        return f"{self.name} {self.number.decode()}".strip()

    def decode(self, raw: bytes) -> Any:
        return DECODERS[self.name](raw)


STATE: Final = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}'
KINDS: Final = (
    Kind("state", STATE, b'"leader":1'),
    Kind("state", STATE, b'"isr":[1'),
    Kind("topic", b'{"version":2,"partitions":{"0":[1]},"adding_replicas":{},"removing_replicas":{}}', b'"0":[1'),
    Kind(
        "broker",
        b'{"version":5,"host":"h","port":9092,"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://h:9092"],'
        b'"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"}}',
        b'"version":5',
    ),
    Kind("controller", b'{"version":2,"brokerid":1,"timestamp":"17"}', b'"brokerid":1'),
    Kind("producer ids", b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}', b'"broker":1'),
    Kind("cluster id", b'{"version":"1","id":"x"}', b""),
    Kind("config", b'{"version":1,"config":{"a":"1"}}', b'"version":1'),
    Kind("config change", b'{"version":2,"entity_path":"topics/t"}', b'"version":2'),
    Kind("log dir event", b'{"version":1,"broker":1,"event":1}', b'"broker":1'),
    Kind("partitions", b'{"version":1,"partitions":[{"topic":"t","partition":3}]}', b'"partition":3'),
    Kind("targets", b'{"version":1,"partitions":[{"topic":"t","partition":3,"replicas":[1]}]}', b'"partition":3'),
)
#: Replacements for a number.
NUMBERS: Final = {
    "NaN": b"NaN",
    "infinity": b"Infinity",
    "true": b"true",
    "null": b"null",
    "a text": b'"1"',
    "a fraction": b"1.0",
    "an exponent": b"1e0",
    "2^31": b"2147483648",
    "2^63": b"9223372036854775808",
    "2^64": b"18446744073709551616",
    "1e400": b"1e400",
    "endless": b"9" * 5000,
    "below -2^31": b"-2147483649",
    "octal": b"01",
    "hexadecimal": b"0x1",
    "a list": b"[1]",
    "Arabic": b"\xd9\xa1",
}
#: Replacements for the whole content, derived from Kafka's.
WHOLES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "too long": lambda raw: raw + b" " * ZNODE_BYTES_MAX,
    "a list": lambda raw: b"[" + raw + b"]",
    "twice": lambda raw: raw + raw,
    "torn": lambda raw: raw[:-1],
    "an unknown key twice": lambda raw: raw[:-1] + b',"x":1,"x":1}',
    "a known key twice": lambda raw: raw[:-1] + b"," + raw[1:],
    "deep": lambda raw: raw[:-1] + b',"x":' + b"[" * 17 + b"]" * 17 + b"}",
    "very deep": lambda raw: raw[:-1] + b',"x":' + b'{"a":' * 100_000,
    "NaN in an unknown field": lambda raw: raw[:-1] + b',"x":NaN}',
    "no UTF-8": lambda raw: raw[:-1] + b',"x":"\xff"}',
    "UTF-16": lambda raw: raw.decode().encode("utf-16"),
    "a byte order mark": lambda raw: b"\xef\xbb\xbf" + raw,
}

NUMBERED: Final = [kind for kind in KINDS if kind.number]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_kafkas_content_is_accepted(kind: Kind) -> None:
    kind.decode(kind.raw)


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("kind", NUMBERED, ids=str)
def test_malformed_numbers_are_refused(kind: Kind, number: bytes) -> None:
    assert kind.raw.count(kind.number) == 1
    raw = kind.raw.replace(kind.number, re.sub(rb"[0-9]+$", lambda _: number, kind.number))
    assert raw != kind.raw
    with pytest.raises(ZnodeError) as caught:
        kind.decode(raw)
    assert len(str(caught.value)) < 400


#: Versions are checked by another test. Any number is a valid replica, as in Kafka.
IDS: Final = [kind for kind in NUMBERED if kind.name != "topic" and b'"version"' not in kind.number]


@pytest.mark.parametrize("kind", IDS, ids=str)
def test_negative_ids_are_refused(kind: Kind) -> None:
    with pytest.raises(ZnodeError):
        kind.decode(kind.raw.replace(kind.number, re.sub(rb"[0-9]+$", b"-2", kind.number)))


@pytest.mark.parametrize("mutate", WHOLES.values(), ids=WHOLES)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_malformed_records_are_refused(kind: Kind, mutate: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ZnodeError) as caught:
        kind.decode(mutate(kind.raw))
    assert len(str(caught.value)) < 400
