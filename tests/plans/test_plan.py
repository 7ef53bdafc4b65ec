"""``kframe.plan``: the example of its documentation, and requests as an object or as keywords."""

from __future__ import annotations

import doctest

import pytest

import kframe
from kframe.errors import InputError
from kframe.plans import generate as planning
from kframe.snapshot import generate


@pytest.fixture(scope="module")
def snapshot() -> kframe.Snapshot:
    return generate(brokers=4, partitions=100, seed=7)


def test_documentation_example_runs() -> None:
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    for example in finder.find(planning.plan, "plan", globs={}):
        runner.run(example)
    results = runner.summarize(verbose=False)
    assert (results.failed, results.attempted) == (0, 6)


def test_plan_by_request_equals_plan_by_fields(snapshot: kframe.Snapshot) -> None:
    request = kframe.PlanRequest(remove_brokers=(0,))
    left, right = kframe.plan(snapshot, request), kframe.plan(snapshot, remove_brokers=(0,))
    assert left.plan.targets.replicas.values.tolist() == right.plan.targets.replicas.values.tolist()


def test_unknown_broker_raises_input_error(snapshot: kframe.Snapshot) -> None:
    with pytest.raises(InputError, match="remove_brokers"):
        kframe.plan(snapshot, remove_brokers=(99,))
