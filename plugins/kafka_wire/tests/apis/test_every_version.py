"""Every version of every offered API through a real socket, and APIs that are not offered."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import pytest
from kframe_kafka_wire.apis.table import APIS, PRODUCE
from kframe_kafka_wire.protocol import codec

from kframe.testing.clusters import healthy
from verification.kafka_wire.messages import draw
from verification.kafka_wire.served import Served


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Served({"t": [healthy(1, 2), healthy(2, 1)]}) as served:
        yield served


@pytest.mark.parametrize("api_key", APIS, ids=codec.API_NAMES.get)
def test_every_version_gets_a_response(api_key: int, served: Served) -> None:
    chance = random.Random(api_key)
    with served.client() as client:
        for version in range(APIS[api_key].newest + 1):
            for _ in range(3):
                fields = draw(codec.request_class(api_key, version), chance)
                if "timeout" in fields:
                    fields["timeout"] = 1
                if api_key == PRODUCE:
                    fields["acks"] = 1
                response = client.ask(api_key, version, **fields)
                assert isinstance(response, dict)


@pytest.mark.parametrize("version", [5, 6, 99, 32767, -1])
def test_unknown_versions_of_api_versions_get_version_0(version: int, served: Served) -> None:
    with served.client() as client:
        client.send(struct.pack(">ihhi", 20, 18, version, 77) + b"\x00" * 12)
        if version < 0:
            assert client.ended()
            return
        correlation_id, response = codec.decode_response(18, 0, client.receive())
        assert correlation_id == 77
        assert response == {"error_code": 35, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 4}]}
        assert client.ask(18, 4, client_software_name="a", client_software_version="1")["error_code"] == 0


#: (API key, version) that are not supported.
NOT_SERVED = [(3, 13), (3, -1), (19, 8), (58, 0), (68, 0), (69, 0), (52, 0), (999, 0), (-1, 0), (1, 18), (7, 4)]


@pytest.mark.parametrize("api_key, version", NOT_SERVED)
def test_unserved_apis_end_the_connection(api_key: int, version: int, served: Served) -> None:
    with served.client() as client:
        client.send(struct.pack(">ihhih", 10, api_key, version, 1, -1))
        assert client.ended()


@pytest.mark.parametrize("name, code", [("apache-kafka-java", 0), ("", 42), ("-x", 42), ("a b", 42), ("x.", 42)])
def test_client_software_names_are_validated(name: str, code: int, served: Served) -> None:
    with served.client() as client:
        assert client.ask(18, 3, client_software_name=name, client_software_version="1")["error_code"] == code
        assert client.ask(18, 4, client_software_name="ok", client_software_version=name)["error_code"] == code


@pytest.mark.parametrize("version", range(5))
def test_api_versions_marks_an_instance_of_kframe(version: int, served: Served) -> None:
    """In a tagged field, which clients that do not know it skip. Older versions have no tagged fields."""
    fields = {"client_software_name": "x", "client_software_version": "1"}
    with served.client() as client:
        response = client.ask(18, version, **(fields if version >= 3 else {}))
    assert response.get("is_controller_only", False) is (version >= 3)


def test_responses_are_in_order_of_requests(served: Served) -> None:
    with served.client() as client:
        for number in range(50):
            client.send(codec.encode_request(3 if number % 2 else 18, 0, number, "x", {"topics": []}))
        for number in range(50):
            (correlation_id,) = struct.unpack_from(">i", client.receive())
            assert correlation_id == number


def test_produce_without_acks_has_no_response(served: Served) -> None:
    with served.client() as client:
        client.send(codec.encode_request(0, 7, 1, "x", {"acks": 0}))
        assert client.ask(18, 0)["error_code"] == 0
