"""``kframe.plan``: the example of its documentation, and a request as an object."""

from __future__ import annotations

import doctest

import kframe
from kframe.plans import generate as planning
from kframe.snapshot import generate


def test_documentation_example_runs() -> None:
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    for example in finder.find(planning.plan, "plan", globs={}):
        runner.run(example)
    results = runner.summarize(verbose=False)
    assert (results.failed, results.attempted) == (0, 6)


def test_plan_by_request_equals_plan_by_fields() -> None:
    snapshot = generate(brokers=4, partitions=100, seed=7)
    left, right = (
        kframe.plan(snapshot, kframe.PlanRequest(remove_brokers=(0,))),
        kframe.plan(snapshot, remove_brokers=(0,)),
    )
    assert left.plan.targets.replicas.values.tolist() == right.plan.targets.replicas.values.tolist()
