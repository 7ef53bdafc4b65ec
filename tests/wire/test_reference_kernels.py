"""Each kernel call of the encoders changes its arrays exactly as its reference does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from kframe.wire import leader_and_isr, sections, stop_replica, update_metadata
from tests.wire.cases import Case, broker, build, case_of, partition, topic
from tests.wire.content import EVERY_VERSION
from tests.wire.encoding import CASES, encoded
from verification.reference import requests as reference
from verification.support.properties import examples

pytestmark = pytest.mark.kernel

KERNELS = sorted(reference.__all__)


class ComparedKernels:
    """Return the compiled kernels. Each call also runs on the reference with copies of its arrays, and is compared."""

    def __init__(self) -> None:
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
            expected = getattr(reference, name)(*copies)
            assert getattr(kernels, name)(*args) == expected
            for argument, copy in zip(args, copies, strict=True):
                assert np.array_equal(argument, copy)
            self.called.add(name)
            return expected

        return call


@examples(0.8)
@given(case=CASES, byte_limit=st.sampled_from([1, 200, 2**20]), group_bytes=st.sampled_from([1, 500, 2**20]))
def test_request_kernels_equal_references(case: Case, byte_limit: int, group_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "GROUP_BYTES", group_bytes)
        for module in (leader_and_isr, sections, stop_replica, update_metadata):
            patch.setattr(module, "kernels", ComparedKernels())
        for api, version in EVERY_VERSION:
            encoded(*build(case), api, version, byte_limit)


def test_every_kernel_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = ComparedKernels()
    for module in (leader_and_isr, sections, stop_replica, update_metadata):
        monkeypatch.setattr(module, "kernels", compared)
    keys = [[0, 0]]
    content = {"leaderAndIsr": {"1": [[0, 0, 1]]}, "updateMetadata": [[1], keys], "stopReplica": {"1": [[0, 0, 0, 0]]}}
    case = case_of([broker(1)], [topic("t", partition([1]))], **content)
    encoded(*build(case), "LeaderAndIsr", 7)
    assert sorted(compared.called) == KERNELS
