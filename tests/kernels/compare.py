"""Calls a kernel and its reference on equal arguments, with guards around the OUT arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import cache
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe import kernels
from verification import reference

#: Initial value of OUT arrays and of the guards around them. It reveals skipped and excess writes.
GUARD: Final = 0x5A
GUARDS: Final = 4


@cache
def parameters(module: ModuleType, name: str) -> tuple[str, ...]:
    """Return the names of a kernel's parameters."""
    return tuple(inspect.signature(getattr(module, name)).parameters)


def call(
    module: ModuleType, name: str, value: Callable[[str], Any], out: Mapping[str, int], of_bytes: Collection[str]
) -> tuple[int, dict[str, Any]]:
    """Return the result of a kernel, and its OUT arrays with guards. Its inputs are read-only.

    ``value`` returns an input by its parameter, ``out`` has the sizes of OUT arrays. Those in ``of_bytes`` are uint8,
    all others int32.
    """
    guarded: dict[str, Any] = {}
    arguments = []
    for parameter in parameters(reference, name):
        if parameter in out:
            guarded[parameter] = np.full(
                out[parameter] + 2 * GUARDS, GUARD, np.uint8 if parameter in of_bytes else np.int32
            )
            arguments.append(guarded[parameter][GUARDS:-GUARDS])
            continue
        argument = value(parameter)
        if isinstance(argument, np.ndarray):
            argument = argument.copy()
            argument.flags.writeable = False
        arguments.append(argument)
    return getattr(module, name)(*arguments), guarded


def check_kernel(name: str, value: Callable[[str], Any], out: Mapping[str, int], of_bytes: Collection[str]) -> None:
    """Assert that a kernel has the result and OUT arrays of its reference, and writes nothing else."""
    count, written = call(kernels, name, value, out, of_bytes)
    expected_count, expected = call(reference, name, value, out, of_bytes)
    assert count == expected_count
    assert {key: array.tolist() for key, array in written.items()} == {
        key: array.tolist() for key, array in expected.items()
    }
    for array in written.values():
        assert (array[:GUARDS] == GUARD).all()
        assert (array[-GUARDS:] == GUARD).all()


def failure_counts(brokers: int, racks: int) -> dict[str, NDArray[Any]]:
    """Return the OUT arrays of ``count_failures``, filled with 7."""
    b = brokers
    shapes = {
        "totals": (2, 9),
        "brokers": (b, 9),
        "racks": (racks, 9),
        "leads": (2, b),
        "broker_leads": (b, b),
        "rack_leads": (racks, b),
        "successors": (7, b, b),
        "further_replicas": (7, b),
        "shared_racks": (7, b),
    }
    return {name: np.full(shape, 7, np.int32) for name, shape in shapes.items()}


def pair_failure_counts(brokers: int, rows: int) -> dict[str, NDArray[Any]]:
    """Return the OUT arrays of ``count_pair_failures`` in ``rows`` rows, filled with 7."""
    return {
        "pairs": np.full((brokers * (brokers - 1) // 2, 9), 7, np.int32),
        "lead_key": np.full(4 * rows, 7, np.int64),
        "lead_change": np.full(4 * rows, 7, np.int8),
        "third_key": np.full(rows, 7, np.int64),
        "further_pairs": np.full((3, brokers, brokers), 7, np.int32),
    }
