"""The native tier: a C function that chooses for one partition at a time, called in a loop without the GIL.

It may come from anywhere that makes C functions: Cython (``cdef api``, then ``module.__pyx_capi__["name"]``), a C
extension (``PyCapsule_New``), numba's ``cfunc``, cffi or ctypes. A capsule carries its C signature as its name, as in
SciPy's LowLevelCallable; for a bare address the signature is stated. The signature is all that can be checked: the
function itself is trusted. ``kframe plugins check`` runs it in a process of its own first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe.errors import PluginError, ShapeError
from kframe.kernels import _selectors
from kframe.model.columns import Int32
from kframe.model.elections import ElectionBatch, NativeCall

#: The C signature of a native selector, as in ``selector.h``.
SIGNATURE: Final = "int32_t (const kframe_election *, void *)"

_FUNCTION: Final = re.compile(r"\s*(?P<result>\w+)\s*(?:\(\s*\*\s*\)\s*)?\((?P<parameters>[^()]*)\)\s*")
_PARAMETER: Final = re.compile(r"(?P<words>\w+(?:\s+\w+)*)\s*(?P<stars>(?:\*\s*)*)(?P<name>\w*)\s*")


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """A C function by its address, for makers of functions that do not make capsules.

    ``signature`` says in C what it is; ``user_data`` is an address that it gets with every call; ``owner`` is whatever
    must stay alive for both to stay valid (the ctypes, cffi or numba object).
    """

    address: int
    signature: str
    user_data: int = 0
    owner: object = None


class NativeSelector:
    """A C function as a LeaderSelector.

    ``source`` is a PyCapsule or a NativeFunction. Raises PluginError if it is neither, points nowhere, or if its
    signature is not SIGNATURE; the spelling of const, spaces and parameter names does not matter.
    """

    def __init__(self, name: str, source: object) -> None:
        self._name = name
        self._source = source
        if isinstance(source, NativeFunction):
            signature, self._address, self._user_data = source.signature, source.address, source.user_data
        else:
            signature, self._address, self._user_data = _capsule_parts(name, source)
        if normal_signature(signature) != normal_signature(SIGNATURE):
            raise PluginError(f"native selector {name!r}: its signature is {signature!r}, expected {SIGNATURE!r}")
        if self._address == 0:
            raise PluginError(f"native selector {name!r}: its address is 0")

    @property
    def name(self) -> str:
        """See LeaderSelector."""
        return self._name

    @property
    def native(self) -> NativeCall:
        """What a Selection calls straight on the columns, with no batch in between."""
        return NativeCall(self._address, self._user_data)

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector. Raises ShapeError if the arrays of the batch contradict each other."""
        check_shapes(batch, leader)
        _selectors.elect(self._address, self._user_data, batch, leader)


def include_dir() -> str:
    """The directory to compile native selectors with (``-I``), for ``#include "kframe/plugin/selector.h"``."""
    return str(Path(__file__).resolve().parents[2])


def normal_signature(signature: str) -> str | None:
    """A C function type in one spelling, without parameter names; None if it is not one."""
    found = _FUNCTION.fullmatch(signature)
    if not found:
        return None
    parameters = []
    for text in found["parameters"].split(","):
        parameter = _PARAMETER.fullmatch(text.strip())
        if not parameter:
            return None
        words = [word for word in parameter["words"].split() if word != "struct"]
        base = " ".join(sorted(words, key=lambda word: word != "const"))
        parameters.append(base + "*" * parameter["stars"].count("*"))
    return f"{found['result']}({', '.join(parameters)})"


def check_shapes(batch: ElectionBatch, leader: Int32) -> None:
    """Raise ShapeError unless the arrays of a batch and ``leader`` (k,) have the lengths that ElectionBatch states."""
    count, candidates, isr = len(batch), batch.candidates, batch.isr
    rows = (batch.topic, batch.partition, batch.leader, batch.leader_epoch, batch.unclean_allowed, leader)
    beside = (batch.eligible, batch.in_sync, batch.may_lead)
    brokers = (batch.broker_rack, batch.broker_live, batch.broker_shutting_down)
    fits = (
        len(candidates) == len(isr) == count
        and all(len(one) == count for one in rows)
        and all(len(one) == len(candidates.values) == candidates.offsets[-1] for one in beside)
        and len(isr.values) == isr.offsets[-1]
        and all(len(one) == len(batch.broker_ids) for one in brokers)
    )
    if not fits:
        raise ShapeError(f"the arrays of a batch of {count} partitions contradict each other")


def _capsule_parts(name: str, source: object) -> tuple[str, int, int]:
    try:
        signature, address, user_data = _selectors.capsule_parts(source)
    except ValueError:
        found = type(source).__name__
        raise PluginError(f"native selector {name!r}: found {found}, expected a PyCapsule or NativeFunction") from None
    if signature is None:
        raise PluginError(f"native selector {name!r}: the capsule has no name, expected {SIGNATURE!r}")
    return signature, address, user_data
