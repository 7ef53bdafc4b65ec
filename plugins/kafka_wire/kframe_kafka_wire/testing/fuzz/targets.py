"""The fuzz targets and their base cases: a message of each API and version in both directions, and the corpus."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kframe_kafka_wire import codec
from kframe_kafka_wire.testing.fuzz.frames import Replies, Requests
from kframe_kafka_wire.testing.fuzz.logins import ClientLogins, ServerLogins
from kframe_kafka_wire.testing.fuzz.used import AdminReplies, ControlReplies
from kframe_kafka_wire.testing.messages import draw, every_version, request_class, response_class
from kframe_simulator.fuzz import Base, Target, bases_of, read_corpus

CORPUS: Final = Path(__file__).with_name("corpus.tsv")
#: Byte sequences that are likely to break decoders of Kafka's layouts.
PIECES: Final = [
    *(struct.pack(">i", number) for number in (-1, 0, 1, 5, 2**31 - 1, -(2**31), 10**6)),
    *(struct.pack(">h", number) for number in (-1, 0, 1, 2**15 - 1, -(2**15))),
    b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f", b"\xff" * 9, b"\x80\x80\x80\x80\x00", b"\x80" * 20,
    b"\x01\x00\x00", b"\x01\x05\x01a", b"\x01\x63\xff\xff\xff\x7f", b"\x00" * 16, b"\xff", b"\xed\xa0\x80", b"\x00",
    b"\x01" * 32, b"\x00" * 64, b"a" * 300, b"\0u\0p", b"n,,n=u,r=x", b"r=x,s=AA==,i=4096", b"i=9999999", b"=2C", b",",
]  # fmt: skip


def targets() -> Sequence[Target]:
    """All targets."""
    corpus = read_corpus(CORPUS)
    chance = random.Random(18)
    requests, replies = [], []
    for api_key, version in every_version():
        fields = draw(request_class(api_key, version), chance)
        request = codec.encode_request(api_key, version, 7, "client", fields)
        reply = codec.encode_response(api_key, version, 7, draw(response_class(api_key, version), chance))
        requests.append(Base(str(api_key), request[4:]))
        replies.append(Base(f"{api_key} {version}", reply[4:]))
    fuzzed: list[Target] = [
        Requests("request", [*requests, *bases_of(corpus, "request")], PIECES, share=8),
        Replies("reply", [*replies, *bases_of(corpus, "reply")], PIECES, share=8),
        ControlReplies("control reply", bases_of(corpus, "control reply"), PIECES, share=2),
    ]
    small = (("admin reply", AdminReplies), ("login reply", ClientLogins), ("login token", ServerLogins))
    return [*fuzzed, *(target(name, bases_of(corpus, name), PIECES, share=1) for name, target in small)]
