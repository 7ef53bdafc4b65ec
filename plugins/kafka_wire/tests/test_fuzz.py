"""A million bent frames of every API and version, both ways: each is decoded or refused, in little memory.

``python -m kframe_kafka_wire.testing.fuzz`` runs the same, longer if it is told to, and makes single cases again.
"""

from __future__ import annotations

import pytest
from kframe_kafka_wire.apis.versions import OFFERED
from kframe_kafka_wire.client import verdict
from kframe_kafka_wire.testing.fuzz.targets import CORPUS, targets
from kframe_kafka_wire.testing.messages import every_version

from kframe.errors import ErrorCode
from kframe_simulator.fuzz import CASES, PEAK_BYTES_MAX, Base, Batch, Target, read_corpus, report, run, signature

SEED = 20
TARGETS = {one.name: one for one in targets()}
KEPT = read_corpus(CORPUS)


@pytest.mark.timeout(1800)
def test_a_million_frames() -> None:
    totals_by_target = run(targets, SEED, CASES)
    told = report("kframe_kafka_wire.testing.fuzz", SEED, totals_by_target)
    assert [one.target for one in totals_by_target if one.escaped] == [], told
    assert sum(one.cases for one in totals_by_target) == CASES, told
    assert [one.target for one in totals_by_target if min(one.decoded, one.refused) < one.cases / 50] == [], told
    assert max(one.peak_bytes for one in totals_by_target) <= PEAK_BYTES_MAX, told


def test_frames_of_every_version_are_bent() -> None:
    offered = {(key, version) for key, (first, last) in OFFERED.items() for version in range(first, last + 1)}
    asked = {(int.from_bytes(one.raw[:2]), int.from_bytes(one.raw[2:4])) for one in TARGETS["request"].bases}
    answered = {tuple(map(int, one.kind.split())) for one in TARGETS["reply"].bases}
    assert offered <= asked
    assert asked == answered == set(every_version())
    # Kafka's own bytes of every version of the requests that a controller sends.
    golden = {(int.from_bytes(one.raw[:2]), int.from_bytes(one.raw[2:4])) for one in KEPT if one.target == "request"}
    assert {(4, version) for version in range(8)} | {(5, version) for version in range(5)} <= golden
    read = {tuple(map(int, one.kind.split())) for one in TARGETS["control reply"].bases}
    assert read == {(4, v) for v in range(8)} | {(5, v) for v in range(5)} | {(6, v) for v in range(9)}


def test_the_corpus_covers_every_target() -> None:
    decoded = {one.target for one in KEPT if one.outcome == "decoded"}
    refused = {one.target for one in KEPT if one.outcome != "decoded"}
    assert decoded == refused == TARGETS.keys()


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_the_corpus_has_the_outcomes_that_it_had(target: Target) -> None:
    kept = [one for one in KEPT if one.target == target.name]
    outcomes = target.evaluate(Batch.of([Base(one.kind, one.raw) for one in kept]))
    assert [one._replace(outcome=signature(told)) for one, told in zip(kept, outcomes, strict=True)] == kept


@pytest.mark.parametrize("code, told", [(0, 0), (41, 41), (4711, -1), (-31_232, -1), (-1, -1)])
def test_an_error_that_nobody_knows_is_an_error(code: int, told: int) -> None:
    """Kafka has more than a controller knows, and will have others. The fuzz has found it."""
    assert verdict({"error_code": code}) is ErrorCode(told)
