"""The fuzzed decoders. Each receives a message and its kind, and raises an error if it is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from kframe_kafka_wire import _responses
from kframe_kafka_wire.access.sasl import PlainExchange, ScramExchange
from kframe_kafka_wire.admin.client import ALTER, ELECT, LIST, AdminClient, top_level_error
from kframe_kafka_wire.connections.login import authenticate
from kframe_kafka_wire.connections.node import METADATA, NodeConnection
from kframe_kafka_wire.listeners.security import Credentials, ListenerSecurity
from kframe_kafka_wire.protocol import codec
from kframe_kafka_wire.records.credentials import make_credential
from kframe_kafka_wire.requests.content import LEADER_AND_ISR, UPDATE_METADATA, BatchTopics, RequestContent
from kframe_kafka_wire.requests.responses import PendingRequest, read_response

from kframe.plugin.cluster import ElectionType, Targets
from kframe.plugin.columns import Ragged
from kframe.plugin.wire import header_version
from verification.reference import responses as reference_responses

#: Each n-th decoded message is encoded, and must be equal after decoding again.
_ROUND_TRIP_INTERVAL: Final = 16
#: Partitions of the control requests.
_PARTITIONS: Final = 4
_CREDENTIAL: Final = make_credential("SCRAM-SHA-256", "p", b"salt")


def decode_request(raw: bytes, _kind: str) -> None:
    """Decode a request as ``ClientConnection`` does. A mutated header may name another API than the kind."""
    header = codec.decode_header(raw)
    body = codec.decode_request(header, raw)
    if sum(raw) % _ROUND_TRIP_INTERVAL == 0:
        encoded = codec.encode_request(header.api_key, header.api_version, 1, header.client_id, body)[4:]
        _assert_equal(body, codec.decode_request(codec.decode_header(encoded), encoded))


def decode_reply(raw: bytes, kind: str) -> None:
    """Decode a response as the requester does. The kind is an API and a version."""
    api_key, version = map(int, kind.split())
    _, body = codec.decode_response(api_key, version, raw)
    if sum(raw) % _ROUND_TRIP_INTERVAL == 0:
        _assert_equal(
            body, codec.decode_response(api_key, version, codec.encode_response(api_key, version, 7, body)[4:])[1]
        )


def _assert_equal(body: dict[str, Any], decoded: dict[str, Any]) -> None:
    # Compared as text, because NaN is not equal to itself.
    assert repr(body) == repr(decoded), (body, decoded)


def decode_control_reply(raw: bytes, kind: str) -> None:
    """Read a response to a control request as the transport does. Kernel and reference implementation must agree."""
    api_key, version = map(int, kind.split())
    if api_key != UPDATE_METADATA and len(raw) >= 6 + _is_flexible(api_key, version):
        scans = [scan(module, api_key, version, raw, _PARTITIONS) for module in (_responses, reference_responses)]
        assert scans[0] == scans[1]
    read_response(pending_request(api_key, version, _PARTITIONS), raw)


def scan(module: Any, api_key: int, version: int, raw: bytes, max_partitions: int) -> tuple[int, Any, Any]:
    """The end, errors and counts that ``scan_response`` of a module finds in a response; -1 and None if malformed."""
    flexible, by_topic_id = _is_flexible(api_key, version), api_key == LEADER_AND_ISR and version >= 5
    errors, counts = np.zeros((min(max_partitions, len(raw) // 6), 4), np.int32), np.zeros(2, np.int32)
    end = module.scan_response(raw, 6 + flexible, flexible, by_topic_id, max_partitions, errors, counts)
    return end, *((errors[: counts[1]].tolist(), counts.tolist()) if end >= 0 else (None, None))


def _is_flexible(api_key: int, version: int) -> bool:
    return header_version(api_key, version) == 2


def pending_request(api_key: int, version: int, partitions: int) -> PendingRequest:
    """A control request with correlation id 7 for partitions of topic ``a``, all of them deleted."""
    numbers = np.arange(partitions, dtype=np.int32)
    names = BatchTopics(np.zeros(1, np.int32), np.ones((1, 16), np.uint8), ["a"])
    content = RequestContent(
        api_key, numbers, np.zeros_like(numbers), numbers, np.ones(partitions, np.uint8), numbers, names
    )
    return PendingRequest(1, 1, 1, api_key, version, 7, content, slice(0, partitions))


def decode_admin_reply(raw: bytes, kind: str) -> None:
    """Read a response as the admin client does. The kind is an API key."""
    _ADMIN_CALLS[int(kind)](_ScriptedClient(int(kind), raw))


class _ScriptedNode(NodeConnection):
    """A broker without a connection."""

    def __init__(self) -> None:
        self.node_id = 1
        self.is_controller_only = False
        self.features: dict[str, int] = {}


class _ScriptedClient(AdminClient):
    """A client that receives these bytes as its response to an API. Other responses are empty."""

    def __init__(self, api_key: int, raw: bytes) -> None:
        super().__init__([("broker", 9092)], ListenerSecurity("CLIENT", "PLAINTEXT", None, sasl=False, config={}))
        self._api_key = api_key
        self._raw = raw

    def ask_node(self, api_key: int, **fields: Any) -> tuple[NodeConnection, dict[str, Any]]:
        if api_key != self._api_key:
            return _ScriptedNode(), {"topics": []}
        _, response = codec.decode_response(api_key, _VERSIONS[api_key], self._raw)
        top_level_error(response)
        return _ScriptedNode(), response


#: The versions of the responses in the corpus.
_VERSIONS: Final = {METADATA: 9, ELECT: 2, ALTER: 0, LIST: 0}
_TARGETS: Final = Targets(
    ("t",), np.zeros(1, np.int32), np.zeros(1, np.int32), Ragged.of([[1, 2]]), np.zeros(1, np.bool_)
)
_ADMIN_CALLS: Final[Mapping[int, Any]] = {
    METADATA: AdminClient.capture,
    ALTER: lambda client: client.reassign(_TARGETS),
    LIST: AdminClient.reassignments,
    ELECT: lambda client: client.elect(ElectionType.PREFERRED, [("t", 0)]),
}


def decode_login_reply(raw: bytes, mechanism: str) -> None:
    """Log in with the server's tokens, each after a byte with its length. The kind is a mechanism."""
    replies = _tokens(raw)
    authenticate(Credentials(mechanism, "u", "p"), "client", lambda _: next(replies))


def decode_login_token(raw: bytes, mechanism: str) -> None:
    """Answer the client's tokens, in the same format."""
    tokens = _tokens(raw)
    exchange: PlainExchange | ScramExchange
    if mechanism == "PLAIN":
        exchange = PlainExchange({"user_u": "p"})
    else:
        exchange = ScramExchange(mechanism, lambda _, user: _CREDENTIAL if user == "u" else None, nonce=lambda: "x")
    while exchange.principal is None:
        exchange.evaluate_response(next(tokens))


def _tokens(raw: bytes) -> Iterator[bytes]:
    """The tokens, then endless empty tokens."""
    offset = 0
    while True:
        length = raw[offset] if offset < len(raw) else 0
        yield raw[offset + 1 : offset + 1 + length]
        offset += 1 + length
