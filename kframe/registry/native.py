"""The native tier: a C function that chooses for a partition at a time, called in a loop without the GIL.

It comes from Cython (``cdef api``, then ``module.__pyx_capi__["name"]``), a C extension (``PyCapsule_New``), numba's
``cfunc``, cffi or ctypes. The name of a capsule is its C signature, as in SciPy's LowLevelCallable; an address comes
with its signature. Only the signature can be checked. ``kframe plugins check`` calls the function in a child process.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe.errors import PluginError, ShapeError
from kframe.kernels import _selectors
from kframe.model.arrays import Int32
from kframe.model.elections import ElectionBatch, NativeCall

#: The C signature of a native selector, as in ``selector.h``.
SIGNATURE: Final = "int32_t (const kframe_election *, void *)"

_FUNCTION: Final = re.compile(r"\s*(?P<result>\w+)\s*(?:\(\s*\*\s*\)\s*)?\((?P<parameters>[^()]*)\)\s*")
_PARAMETER: Final = re.compile(r"(?P<words>\w+(?:\s+\w+)*)\s*(?P<stars>(?:\*\s*)*)(?P<name>\w*)\s*")


@dataclass(frozen=True, slots=True)
class NativeFunction:
    """A C function by its address, where no capsule is available.

    ``signature`` is its C type; ``user_data`` is an address passed with every call; ``owner`` keeps both alive (the
    ctypes, cffi or numba object).
    """

    address: int
    signature: str
    user_data: int = 0
    owner: object = None


class NativeSelector:
    """A C function as a LeaderSelector.

    ``source`` is a PyCapsule or a NativeFunction. Raises PluginError for any other object, for a null address, and for
    a signature other than SIGNATURE; parameter names, spaces and the position of const do not matter.
    """

    def __init__(self, name: str, source: object) -> None:
        self._name = name
        self._source = source
        self._address, self._user_data = native_address(f"native selector {name!r}", source, SIGNATURE)

    @property
    def name(self) -> str:
        """See LeaderSelector."""
        return self._name

    @property
    def native(self) -> NativeCall:
        """The addresses that a Selection calls directly on the columns, without a batch."""
        return NativeCall(self._address, self._user_data)

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """See LeaderSelector. Raises ShapeError if the arrays of the batch contradict each other."""
        check_shapes(batch, leader)
        _selectors.elect(self._address, self._user_data, batch, leader)


def native_address(where: str, source: object, expected: str) -> tuple[int, int]:
    """The address of a native function and of its user data, from a PyCapsule or a NativeFunction.

    Raises PluginError, which begins with ``where``, for any other object, for a null address, and for a signature other
    than ``expected``.
    """
    if isinstance(source, NativeFunction):
        signature, address, user_data = source.signature, source.address, source.user_data
    else:
        signature, address, user_data = _capsule_parts(where, source, expected)
    if normal_signature(signature) != normal_signature(expected):
        raise PluginError(f"{where}: its signature is {signature!r}, expected {expected!r}")
    if address == 0:
        raise PluginError(f"{where}: its address is 0")
    return address, user_data


def include_dir() -> str:
    """The include directory of native selectors (``-I``), for ``#include "kframe/plugin/selector.h"``."""
    return str(Path(__file__).resolve().parents[2])


def normal_signature(signature: str) -> str | None:
    """The canonical spelling of a C function type, without parameter names. None for other text."""
    function = _FUNCTION.fullmatch(signature)
    if not function:
        return None
    parameters = []
    for text in function["parameters"].split(","):
        parameter = _PARAMETER.fullmatch(text.strip())
        if not parameter:
            return None
        words = [word for word in parameter["words"].split() if word != "struct"]
        base = " ".join(sorted(words, key=lambda word: word != "const"))
        parameters.append(base + "*" * parameter["stars"].count("*"))
    return f"{function['result']}({', '.join(parameters)})"


def check_shapes(batch: ElectionBatch, leader: Int32) -> None:
    """Raise ShapeError unless the arrays of a batch and ``leader`` (k,) have the lengths that ElectionBatch states."""
    count, candidates, isr = len(batch), batch.candidates, batch.isr
    rows = (batch.topic, batch.partition, batch.leader, batch.leader_epoch, batch.unclean_allowed, leader)
    per_candidate = (batch.eligible, batch.in_sync, batch.may_lead)
    brokers = (batch.broker_rack, batch.broker_live, batch.broker_shutting_down)
    fits = (
        len(candidates) == len(isr) == count
        and all(len(column) == count for column in rows)
        and all(len(column) == len(candidates.values) == candidates.offsets[-1] for column in per_candidate)
        and len(isr.values) == isr.offsets[-1]
        and all(len(column) == len(batch.broker_ids) for column in brokers)
    )
    if not fits:
        raise ShapeError(f"the arrays of a batch of {count} partitions contradict each other")


def _capsule_parts(where: str, source: object, expected: str) -> tuple[str, int, int]:
    try:
        signature, address, user_data = _selectors.capsule_parts(source)
    except ValueError:
        kind = type(source).__name__
        raise PluginError(f"{where}: found {kind}, expected a PyCapsule or NativeFunction") from None
    if signature is None:
        raise PluginError(f"{where}: the capsule has no name, expected {expected!r}")
    return signature, address, user_data
