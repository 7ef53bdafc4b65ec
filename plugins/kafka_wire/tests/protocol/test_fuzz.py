"""Mutated frames of every API and version, in both directions, are decoded or refused in bounded memory.

``python -m verification.kafka_wire.fuzz`` runs the same with any number of cases, and repeats single cases.
"""

from __future__ import annotations

import pytest
from kframe_kafka_wire.admin.client import top_level_error
from kframe_kafka_wire.apis.table import APIS

from kframe.errors import ErrorCode
from verification.fuzz import CASES, corpus_problems, problems, read_corpus, report, run
from verification.kafka_wire.fuzz.targets import CORPUS, targets
from verification.kafka_wire.messages import every_version

pytestmark = pytest.mark.kernel

SEED = 20
TARGETS = {target.name: target for target in targets()}
SAVED = read_corpus(CORPUS)


@pytest.mark.timeout(1800)
def test_fuzzed_frames_are_decoded_or_refused() -> None:
    totals_by_target = run(targets, SEED, CASES)
    assert problems(totals_by_target, CASES) == [], report("verification.kafka_wire.fuzz", SEED, totals_by_target)


def test_frames_of_every_version_are_mutated() -> None:
    offered = {(key, version) for key, api in APIS.items() for version in range(api.newest + 1)}
    requests = {(int.from_bytes(base.raw[:2]), int.from_bytes(base.raw[2:4])) for base in TARGETS["request"].bases}
    respond = {tuple(map(int, base.kind.split())) for base in TARGETS["reply"].bases}
    assert offered <= requests
    assert requests == respond == set(every_version())
    # Kafka's own bytes of every version of the control requests.
    golden = {
        (int.from_bytes(case.raw[:2]), int.from_bytes(case.raw[2:4])) for case in SAVED if case.target == "request"
    }
    assert {(4, version) for version in range(8)} | {(5, version) for version in range(5)} <= golden
    read = {tuple(map(int, base.kind.split())) for base in TARGETS["control reply"].bases}
    assert read == {(4, v) for v in range(8)} | {(5, v) for v in range(5)} | {(6, v) for v in range(9)}


def test_corpus_has_unchanged_outcomes_of_every_target() -> None:
    assert corpus_problems(SAVED, targets()) == []


@pytest.mark.parametrize("code, expected", [(0, 0), (41, 41), (4711, -1), (-31_232, -1), (-1, -1)])
def test_an_unknown_error_code_is_unknown_server_error(code: int, expected: int) -> None:
    """Kafka has error codes that a controller does not know. Found by fuzzing."""
    assert top_level_error({"error_code": code}) is ErrorCode(expected)
