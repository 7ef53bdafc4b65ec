"""Hypothesis profiles, as in kframe's own tests, and the requirements of tests with real nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from kframe_kraft.server.serving import ServedController

from verification.kraft.held_controller import GatedLog, Node
from verification.kraft.served_controller import served
from verification.support.properties import load_profile
from verification.zookeeper.java import missing

load_profile()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests with real nodes where Java or Maven is missing."""
    if item.get_closest_marker("real") and (lacking := missing()):
        pytest.skip(lacking)


@pytest.fixture
def serve() -> Iterator[Callable[..., ServedController]]:
    """``served``, until the end of the test."""
    with ExitStack() as stack:
        yield lambda directory, **settings: stack.enter_context(served(directory, **settings))


@pytest.fixture
def nodes() -> Iterator[Callable[..., Node]]:
    """``Node``, until the end of the test."""
    made: list[Node] = []

    def make(*args: Any, **kwargs: Any) -> Node:
        made.append(Node(*args, **kwargs))
        return made[-1]

    yield make
    for node in made:
        if isinstance(node.log, GatedLog):
            node.log.gate.set()
        node.loop.stop()
