"""The fuzz targets and their base cases: a message of each API and version in both directions, and the corpus."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe_kafka_wire.access.sasl import SaslError
from kframe_kafka_wire.protocol import codec
from kframe_kafka_wire.protocol.errors import CodecError, WireError

from kframe.plugin import KframeError
from verification.fuzz import Base, Batch, DecoderTarget, Outcome, bases_of, read_corpus
from verification.kafka_wire.fuzz import decoders
from verification.kafka_wire.messages import draw, every_version

CORPUS: Final = Path(__file__).with_name("corpus.tsv")
#: Byte sequences that are likely to break decoders of Kafka's layouts.
PIECES: Final = [
    *(struct.pack(">i", number) for number in (-1, 0, 1, 5, 2**31 - 1, -(2**31), 10**6)),
    *(struct.pack(">h", number) for number in (-1, 0, 1, 2**15 - 1, -(2**15))),
    b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f", b"\xff" * 9, b"\x80\x80\x80\x80\x00", b"\x80" * 20,
    b"\x01\x00\x00", b"\x01\x05\x01a", b"\x01\x63\xff\xff\xff\x7f", b"\x00" * 16, b"\xff", b"\xed\xa0\x80", b"\x00",
    b"\x01" * 32, b"\x00" * 64, b"a" * 300, b"\0u\0p", b"n,,n=u,r=x", b"r=x,s=AA==,i=4096", b"i=9999999", b"=2C", b",",
]  # fmt: skip


#: By the name of the target: the decoder, the error by which it refuses a message, and its share of all cases.
DECODERS: Final[dict[str, tuple[Callable[[bytes, str], None], type[Exception], int]]] = {
    "request": (decoders.decode_request, CodecError, 8),
    "reply": (decoders.decode_reply, CodecError, 8),
    "control reply": (decoders.decode_control_reply, WireError, 2),
    "admin reply": (decoders.decode_admin_reply, KframeError, 1),
    "login reply": (decoders.decode_login_reply, WireError, 1),
    "login token": (decoders.decode_login_token, SaslError, 1),
}


@dataclass(frozen=True, slots=True)
class FrameTarget:
    """A fuzz target for one decoder."""

    name: str
    bases: Sequence[Base]
    pieces: Sequence[bytes]
    share: int

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """The reason why each message is refused, or None."""
        return [self._outcome(batch[i], batch.kinds[i]) for i in range(len(batch))]

    def _outcome(self, raw: bytes, kind: str) -> Outcome:
        decode, refusal, _ = DECODERS[self.name]
        try:
            decode(raw, kind)
        except refusal as error:
            return str(error)
        return None


def targets() -> Sequence[DecoderTarget]:
    """All targets."""
    corpus = read_corpus(CORPUS)
    chance = random.Random(18)
    drawn: dict[str, list[Base]] = {"request": [], "reply": []}
    for api_key, version in every_version():
        fields = draw(codec.request_class(api_key, version), chance)
        request = codec.encode_request(api_key, version, 7, "client", fields)
        reply = codec.encode_response(api_key, version, 7, draw(codec.response_class(api_key, version), chance))
        drawn["request"].append(Base(str(api_key), request[4:]))
        drawn["reply"].append(Base(f"{api_key} {version}", reply[4:]))
    return [
        FrameTarget(name, [*drawn.get(name, ()), *bases_of(corpus, name)], PIECES, share)
        for name, (*_, share) in DECODERS.items()
    ]
