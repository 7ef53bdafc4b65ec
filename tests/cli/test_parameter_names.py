"""An error about a parameter names the option on the command line, and the parameter in Python."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import click
import pytest

from kframe import WhatIf, plan, read_snapshot
from kframe.cli.app import cli
from kframe.cli.output import SET_BY
from kframe.core.selectors.kafka_selectors import Preferred
from kframe.errors import ParameterError
from kframe.plans.stage.request import StageRequest
from kframe.snapshot import Snapshot, generate
from kframe.whatif.sweep import sweep
from tests.architecture.source import ROOT
from tests.cli.running import HEALTHY, PLAN, kframe


class Case(NamedTuple):
    """Arguments of a command after its input, what the same is in Python, and both names."""

    arguments: str
    call: Callable[[Snapshot], Any]
    option: str
    parameter: str


CASES: Final = [
    Case("plan generate S --remove-brokers 77", lambda s: plan(s, remove_brokers=(77,)),
         "--remove-brokers", "remove_brokers"),
    Case("plan generate S --evacuate-rack x", lambda s: plan(s, evacuate_racks=("x",)),
         "--evacuate-rack", "evacuate_racks"),
    Case("plan generate S --rebalance --selector first-in-sync",
         lambda s: plan(s, rebalance=True, leader_selector=Preferred()), "--selector", "leader_selector"),
    Case("plan generate S --one-rack x", lambda s: plan(s, one_rack=("x",)), "--one-rack", "one_rack"),
    Case("plan generate S --one-rack * --fix-racks", lambda s: plan(s, one_rack=("*",), fix_racks=True),
         "--fix-racks", "fix_racks"),
    Case("plan generate S --rebalance --leaders-only", lambda s: plan(s, rebalance=True, leaders_only=True),
         "--leaders-only", "leaders_only"),
    Case("plan generate S --replication-factor t=0", lambda s: plan(s, replication_factors={"t": 0}),
         "--replication-factor of topic t", "replication_factors of topic t"),
    Case("plan generate S --rebalance --capacity 1=0", lambda s: plan(s, rebalance=True, capacities={1: 0.0}),
         "--capacity of broker 1", "capacities of broker 1"),
    Case("plan generate S --rebalance --broker-cap 77=1", lambda s: plan(s, rebalance=True, broker_caps={77: 1}),
         "--broker-cap", "broker_caps"),
    Case("plan generate S --rebalance --topics x", lambda s: plan(s, rebalance=True, topics=("x",)),
         "--topics", "topics"),
    Case("plan stage S PLAN --max-bytes-in-flight 5", lambda s: StageRequest(bytes_in_flight=5),
         "--max-bytes-in-flight", "bytes_in_flight"),
    Case("whatif fail S --brokers 77", lambda s: WhatIf(s).fail([77]), "--brokers", "brokers"),
    Case("whatif delete S a a", lambda s: WhatIf(s).delete(["a", "a"]), "TOPIC...", "topics"),
    Case("explain S x-0", lambda s: WhatIf(s).explain("x", 0), "TOPIC-PARTITION", "partition"),
    Case("explain S clickstream.changelog.v1-0 --fail 77", lambda s: WhatIf(s).fail([77]), "--fail", "brokers"),
    Case("whatif sweep S --elr on", lambda s: sweep(s, elr=True), "--elr", "elr"),
    Case("snapshot generate OUT --partitions 1 --brokers 2", lambda s: generate(1, 2), "--rf", "replication_factor"),
]  # fmt: skip


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return read_snapshot(HEALTHY)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.arguments)
def test_error_names_the_option_or_the_parameter(case: Case, snapshot: Snapshot) -> None:
    files = {"S": HEALTHY, "PLAN": PLAN}
    result = kframe(*(files.get(word, word) for word in case.arguments.split()))
    with pytest.raises(ParameterError) as caught:
        case.call(snapshot)
    where, _, problem = str(caught.value).partition(": ")
    assert where == case.parameter
    assert (result.exit_code, result.stderr) == (2, f"error: {case.option}: {problem}\n")


def command_parameters(command: click.Command) -> Iterator[str | None]:
    """The names of the options and arguments of a command and the commands in it."""
    yield from (parameter.name for parameter in command.params)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            yield from command_parameters(subcommand)


def raised_parameters() -> Iterator[str]:
    """The parameters that errors of kframe name in its source."""
    for path in (ROOT / "kframe").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(ast.Name("ParameterError"), [ast.Constant(str(parameter)), *_]):
                    yield parameter


def test_each_parameter_in_an_error_is_set_by_an_option() -> None:
    options = set(command_parameters(cli))
    raised = set(raised_parameters())
    assert {"racks", "tolerance", "windows"} <= raised
    assert {name for name in raised if not {name, *SET_BY.get(name, ())} & options} == set()
