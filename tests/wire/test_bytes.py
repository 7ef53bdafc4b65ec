"""Bodies are byte-equal to kio's and to Kafka's own, in every version, and contain the batch."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given

from tests.wire.cases import Case, broker, build, case_of, partition, random_case, topic
from tests.wire.content import EVERY_VERSION, contents, kio_class, kio_decode, kio_encode, kio_entity
from tests.wire.encoding import CASES, body, encoded

pytestmark = pytest.mark.kernel

VECTORS = sorted((Path(__file__).parent / "vectors" / "bodies").glob("*.json"))


def check_against_kio(case: Case, api: str, version: int) -> None:
    expected = contents(*build(case), api, version)
    requests = encoded(*build(case), api, version)
    assert [request.broker for request in requests] == [broker for broker, _ in expected]
    for request, (_, content) in zip(requests, expected, strict=True):
        entity = kio_entity(kio_class(api, version), content)
        assert body(request) == kio_encode(entity)
        assert kio_decode(kio_class(api, version), body(request)) == entity
        assert (request.api_version, request.nbytes) == (version, len(body(request)))


@given(case=CASES)
def test_bodies_equal_kio(case: Case) -> None:
    for api, version in EVERY_VERSION:
        check_against_kio(case, api, version)


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
@pytest.mark.parametrize("seed", range(3))
def test_bodies_equal_kio_with_wide_topics(api: str, version: int, seed: int) -> None:
    check_against_kio(random_case(Random(seed), max_partitions=200), api, version)


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_bodies_equal_kio_without_replicas(api: str, version: int) -> None:
    """Partitions without replicas precede and follow a partition with replicas, and come last."""
    partitions = [partition([]), partition([], leader=2, isr=[1]), partition([2, 1]), partition([])]
    contents: dict[str, Any] = {"leaderAndIsr": {"2": [[0, 0, 1], [0, 1, 0], [0, 2, 0], [0, 3, 0]]}}
    contents |= {"updateMetadata": [[1, 2], [[0, number] for number in range(4)]]}
    contents |= {"stopReplica": {"2": [[0, 0, 3, 1], [0, 3, 3, 0]]}}
    check_against_kio(case_of([broker(1), broker(2)], [topic("t", *partitions)], **contents), api, version)


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_bodies_equal_kafka(path: Path) -> None:
    vector = json.loads(path.read_text())
    cluster, requests = build(vector["case"])
    actual = {
        api: {
            version: [body(request).hex() for request in encoded(cluster, requests, api, int(version))]
            for version in bodies
        }
        for api, bodies in vector["bodies"].items()
    }
    assert actual == vector["bodies"]


def test_vectors_cover_every_version() -> None:
    bodies = [json.loads(path.read_text())["bodies"] for path in VECTORS]
    covered = {(api, int(version)) for body in bodies for api, versions in body.items() for version in versions}
    assert covered == set(EVERY_VERSION)
