"""Samples of long tables of tests, which the tests of kframe and of its plugins share. Needs pytest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["every_nth"]


def every_nth(step: int, cases: Iterable[Any]) -> list[Any]:
    """The cases as parameters. ``make test`` runs one of ``step`` cases; the others have the mark ``extended``."""
    return [
        pytest.param(case, marks=pytest.mark.extended if number % step else ()) for number, case in enumerate(cases)
    ]
