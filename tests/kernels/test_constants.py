"""Constants of Cython, C and Python have equal values."""

from __future__ import annotations

import re

import pytest

from kframe.model import ids
from tests.architecture.source import ROOT

pytestmark = pytest.mark.kernel

KERNELS = ROOT / "kframe" / "kernels"
#: Enums of ``constants.pxd`` and the prefix of their members; plain constants have no prefix.
PREFIXES = {
    "ReplicaFlag": "",
    "ElectionKind": "ELECT_",
    "PartitionFlag": "PARTITION_",
    "PartitionState": "PARTITION_",
    "ReplicaState": "REPLICA_",
    "RecoveryState": "",
    "ProposalCheck": "",
}


def test_cython_constants_equal_python_constants() -> None:
    text = (KERNELS / "constants.pxd").read_text()
    enums = re.findall(r"cdef enum ?(\w*):\n((?:    \w+ = -?\d+\n?)+)", text)
    assert {name for name, _ in enums} == {"", *PREFIXES}
    for enum, body in enums:
        for name, value in re.findall(r"(\w+) = (-?\d+)", body):
            member = name.removeprefix(PREFIXES.get(enum, ""))
            expected = getattr(ids, enum)[member] if enum else getattr(ids, member)
            assert int(value) == expected, name


def test_selector_header_constants_equal_python_constants() -> None:
    text = (ROOT / "kframe" / "plugin" / "selector.h").read_text()
    for name, value in re.findall(r"KFRAME_(\w+) = (\d+)", text):
        assert int(value) == ids.ElectionKind[name]
    assert f"KFRAME_OFFLINE_DIR {ids.ReplicaFlag.OFFLINE_DIR:d}\n" in text
    assert f"KFRAME_NO_LEADER ({ids.NO_LEADER})\n" in text


def test_shared_constants_are_defined_once() -> None:
    shared = set(re.findall(r"^    (\w+) =", (KERNELS / "constants.pxd").read_text(), re.MULTILINE))
    for path in [ROOT / "kframe" / "_core.pyx", *KERNELS.glob("*.p[yx][xd]")]:
        if path.name != "constants.pxd":
            assert not shared & set(re.findall(r"^    (\w+) = -?\d+", path.read_text(), re.MULTILINE)), path.name
