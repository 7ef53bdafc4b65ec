"""Compare the outputs of tools under both controllers, without intended differences, and write the evidence page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from verification.support.evidence import facts_lines

#: Outputs by names of client and step, with the count of each.
Outputs = dict[tuple[str, str], Counter[str]]


@dataclass(frozen=True, slots=True)
class IntendedDifference:
    """An intended difference: lines of these tools that match a pattern are ignored under both controllers."""

    tools: re.Pattern[str]
    lines: re.Pattern[str]
    reason: str


def _intended(tools: str, lines: str, reason: str) -> IntendedDifference:
    return IntendedDifference(re.compile(tools), re.compile(lines), reason)


INTENDED_DIFFERENCES: Final = (
    _intended(
        "kafka-broker-api-versions",
        r"HOST:PORT \(id: 1000 .*",
        "kframe is a node of the cluster, because clients look for the controller among its nodes; so it is listed.",
    ),
    _intended(
        "kafka-broker-api-versions",
        r"(Envelope\(58\)|ConsumerGroup\w+\(6[89]\)): .*",
        "kframe does not offer Envelope, which serves KRaft, and the new consumer group protocol, which needs a"
        " coordinator. The other APIs and versions are those of the brokers.",
    ),
    _intended(
        "kafka-configs --describe --entity-type brokers$",
        r"Dynamic configs for broker 1000 are:",
        "The tool asks each node for its own settings, and kframe is one; it has no dynamic settings of its own.",
    ),
    _intended(
        "kafka-log-dirs --describe$",
        r'Received log directory information from brokers .*|"broker":1000.*|"partitions":\[\],.*"logDir":"none".*',
        "The tool asks each node for its log directories. kframe has none, and names one that is empty: Kafka's client"
        " takes a response without any for a refusal.",
    ),
)


@dataclass(frozen=True, slots=True)
class ParityDifference:
    """An output under kframe that Kafka's controller did not cause, and its count."""

    setup: str
    client: str
    step: str
    output: str
    count: int
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParityComparison:
    """The comparison of one setup."""

    outputs: int
    """The number of steps times clients."""
    runs: int
    """The number of tool runs under kframe."""
    repetitions: int
    """The least runs of a step under kframe as one client."""
    tool_runs: int
    """The least runs of a tool under kframe as all clients together."""
    by_design: Mapping[str, int]
    """The number of outputs with ignored differences, by reason."""
    differences: tuple[ParityDifference, ...]


def compare(setup: str, kafka: Outputs, kframe: Outputs) -> ParityComparison:
    """Each output under kframe must also occur under Kafka's controller, apart from intended differences."""
    by_design: Counter[str] = Counter()
    differences = []
    for (client, step), outputs in kframe.items():
        expected = kafka[client, step]
        if outputs.keys() <= expected.keys():
            continue
        rules = [rule for rule in INTENDED_DIFFERENCES if rule.tools.search(step)]
        allowed = {_without(rules, output) for output in expected}
        unexpected = [output for output in outputs if _without(rules, output) not in allowed]
        if not unexpected:
            by_design.update(
                rule.reason for rule in rules if any(rule.lines.fullmatch(line) for line in _lines(outputs))
            )
        differences += [
            ParityDifference(setup, client, step, output, outputs[output], tuple(expected)) for output in unexpected
        ]
    totals = {key: outputs.total() for key, outputs in kframe.items()}
    tool_runs: Counter[str] = Counter()
    for (_, step), total in totals.items():
        tool_runs[step.partition(" ")[0]] += total
    return ParityComparison(
        len(kframe),
        sum(totals.values()),
        min(totals.values()),
        min(tool_runs.values()),
        dict(by_design),
        tuple(differences),
    )


def _lines(outputs: Mapping[str, int]) -> Iterator[str]:
    return (line for output in outputs for line in output.splitlines())


def _without(rules: Sequence[IntendedDifference], output: str) -> str:
    return "\n".join(line for line in output.splitlines() if not any(rule.lines.fullmatch(line) for rule in rules))


def page(record: Mapping[str, Any]) -> str:
    """The page in Markdown."""
    setups: Mapping[str, Mapping[str, Any]] = record["setups"]
    rows = [
        f"| {name} | {each['outputs']} | {each['runs']} | {each['repetitions']} | {each['tool_runs']} |"
        f" {sum(each['by_design'].values())} | {len(each['differences'])} |"
        for name, each in setups.items()
    ]
    reasons: Counter[str] = Counter()
    for each in setups.values():
        reasons.update(each["by_design"])
    differences = [difference for each in setups.values() for difference in each["differences"]]
    lines = [
        "# Kafka's tools under kframe and under Kafka's controller",
        "",
        "Each call of a tool ran on the same cluster, first under Kafka's own controller, then under kframe, as every",
        "principal: `kafka` (super user), `alice` (some ACLs), `eve` (none), anonymous. An output counts as different",
        "if it did not come under Kafka's controller. Ports, times, ids of tokens, sizes and rates are left out, and",
        "lines are put in order, because tools print what hash tables hold.",
        "",
        *facts_lines(record),
        "",
        "Outputs are counted for each call and client. Each call ran under kframe as each client at least as often as",
        "`per call` says, and each tool as all clients together at least as often as `per tool` says. An output that",
        "differs by design for two reasons counts twice.",
        "",
        "| set-up | outputs | runs of tools | per call | per tool | differ by design | differ |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        "## By design",
        "",
        *(f"- {reason} ({count} outputs)" for reason, count in sorted(reasons.items())),
        "",
        "## Differences",
        "",
        *(_described(difference) for difference in differences),
    ]
    return "\n".join(lines if differences else [*lines, "None."]) + "\n"


def _described(difference: Mapping[str, Any]) -> str:
    before = set(difference["expected"][0].splitlines()) if difference["expected"] else set()
    after = set(difference["output"].splitlines())
    changed = [f"    - {line}" for line in sorted(before - after)]
    changed += [f"    + {line}" for line in sorted(after - before)]
    head = f"- {difference['setup']}, {difference['client']}, {difference['count']} times: `{difference['step']}`"
    return "\n".join([head, "", *changed, ""])
