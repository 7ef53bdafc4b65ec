"""Silences the logs of searched controllers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kframe_simulator.search.subject import quiet


@pytest.fixture(autouse=True, scope="module")
def without_logs() -> Iterator[None]:
    with quiet():
        yield
