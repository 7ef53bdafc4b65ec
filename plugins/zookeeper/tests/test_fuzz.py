"""Mutated znodes, which decoder and kernel decode or refuse with a reason, and ZooKeeper's replies.

``python -m verification.zookeeper.fuzz`` runs the same for longer, and repeats single cases.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kframe_zookeeper.bulk.nodes import names_in
from kframe_zookeeper.kernels import _jute_read
from kframe_zookeeper.session.requests import error_name
from kframe_zookeeper.znodes.brokers import decode_broker

from kframe.errors import StoreError, ZnodeError
from verification.fuzz import CASES, corpus_problems, problems, read_corpus, report, run
from verification.reference import jute as reference_jute
from verification.zookeeper.fuzz import CORPUS, targets
from verification.zookeeper.fuzz.replies import OUTCOMES
from verification.zookeeper.fuzz.znodes import DECODERS

pytestmark = pytest.mark.kernel

SEED = 20


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name, only", [("znodes", list(DECODERS)), ("replies", list(OUTCOMES))])
def test_mutated_inputs_are_decoded_or_refused(name: str, only: list[str]) -> None:
    cases = CASES if name == "znodes" else CASES // 10
    totals_by_target = run(targets, SEED, cases, only=only)
    assert problems(totals_by_target, cases) == [], report("verification.zookeeper.fuzz", SEED, totals_by_target)


def test_corpus_has_unchanged_outcomes_of_every_target() -> None:
    assert corpus_problems(read_corpus(CORPUS), targets()) == []


# Bugs that the fuzzing found.


@pytest.mark.parametrize("module", [_jute_read, reference_jute], ids=["kernel", "reference"])
@pytest.mark.parametrize(
    "raw",
    [
        b'{"controller_epoch":-1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}',
        b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":' + b"[" * 100_000,
    ],
    ids=["epoch below 0", "very deep"],
)
def test_kernel_refuses_input_that_decoder_refuses(module: object, raw: bytes) -> None:
    numbers = [np.zeros(1, np.int32) for _ in range(3)]
    recovery, counts, parsed = np.zeros(1, np.uint8), np.zeros(1, np.int32), np.ones(1, np.uint8)
    parse: Callable[..., int] = module.parse_states  # type: ignore[attr-defined]
    data, offsets, length = np.frombuffer(raw, np.uint8), np.zeros(1, np.int64), np.array([len(raw)], np.int32)
    assert parse(data, offsets, length, *numbers, recovery, counts, np.zeros(len(raw), np.int32), parsed) == 0
    assert parsed[0] == 0


def test_refusal_reasons_are_short() -> None:
    raw = b'{"version":2,"endpoints":["' + b"A" * 100_000 + b'://h:1"]}'
    with pytest.raises(ZnodeError) as caught:
        decode_broker("1", raw, 5)
    assert len(str(caught.value)) < 400


def test_unknown_error_code_has_a_name() -> None:
    assert error_name(-101) == "NoNodeError"
    assert error_name(-4711) == "error -4711"


@pytest.mark.parametrize(
    "data",
    [None, b"\x7f\xff\xff\xff", b"\0\0\0\2\0\0\0\1a", b"\0\0\0\1\0\0\0\1\xff"],
    ids=["nothing", "many claimed", "one missing", "no UTF-8"],
)
def test_malformed_list_of_children_is_refused(data: bytes | None) -> None:
    with pytest.raises(StoreError):
        names_in(data)


def test_lists_of_children_are_sorted() -> None:
    assert names_in(b"\0\0\0\2\0\0\0\1b\0\0\0\1a") == ("a", "b")
