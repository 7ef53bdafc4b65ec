"""Outputs of tools under both controllers compared, what differs by design, and the page of evidence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

#: Outputs by name of the client and of the step, each with how often it came.
Outputs = dict[tuple[str, str], Counter[str]]


@dataclass(frozen=True, slots=True)
class Designed:
    """A difference that is meant: lines of these tools that match a pattern do not count, under either controller."""

    tools: re.Pattern[str]
    lines: re.Pattern[str]
    reason: str


def _designed(tools: str, lines: str, reason: str) -> Designed:
    return Designed(re.compile(tools), re.compile(lines), reason)


DESIGNED: Final = (
    _designed(
        "kafka-broker-api-versions", r"HOST:PORT \(id: 1000 .*",
        "kframe is a node of the cluster, because clients look for the controller among its nodes; so it is listed.",
    ),
    _designed(
        "kafka-broker-api-versions", r"(Envelope\(58\)|ConsumerGroup\w+\(6[89]\)): .*",
        "kframe does not offer Envelope, which serves KRaft, and the new consumer group protocol, which needs a"
        " coordinator. The other APIs and versions are those of the brokers.",
    ),
    _designed(
        "kafka-configs --describe --entity-type brokers$", r"Dynamic configs for broker 1000 are:",
        "The tool asks each node for its own settings, and kframe is one; it has no dynamic settings of its own.",
    ),
    _designed(
        "kafka-log-dirs --describe$",
        r'Received log directory information from brokers .*|"broker":1000.*|"partitions":\[\],.*"logDir":"none".*',
        "The tool asks each node for its log directories. kframe has none, and names one that is empty: Kafka's client"
        " takes an answer without any for a refusal.",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """An output under kframe that did not come under Kafka's controller, with how often it came."""

    setup: str
    client: str
    step: str
    output: str
    count: int
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of comparing one set-up."""

    outputs: int
    """How many steps as how many clients."""
    runs: int
    """How many times a tool ran under kframe."""
    repetitions: int
    """How often each step ran under kframe as each client, at least."""
    tool_runs: int
    """How often each tool ran under kframe as all clients together, at least."""
    by_design: Mapping[str, int]
    """How many outputs differ in lines that do not count, by reason."""
    differences: tuple[Difference, ...]


def compare(setup: str, kafka: Outputs, kframe: Outputs) -> Comparison:
    """Each output under kframe must be one that came under Kafka's controller, but for lines that differ by design."""
    by_design: Counter[str] = Counter()
    differences = []
    for (client, step), outputs in kframe.items():
        expected = kafka[client, step]
        if outputs.keys() <= expected.keys():
            continue
        rules = [rule for rule in DESIGNED if rule.tools.search(step)]
        allowed = {_without(rules, output) for output in expected}
        unexpected = [output for output in outputs if _without(rules, output) not in allowed]
        if not unexpected:
            by_design.update(
                rule.reason for rule in rules if any(rule.lines.fullmatch(line) for line in _lines(outputs))
            )
        differences += [
            Difference(setup, client, step, output, outputs[output], tuple(expected)) for output in unexpected
        ]
    totals = {key: outputs.total() for key, outputs in kframe.items()}
    tool_runs: Counter[str] = Counter()
    for (_, step), total in totals.items():
        tool_runs[step.partition(" ")[0]] += total
    return Comparison(
        len(kframe), sum(totals.values()), min(totals.values()), min(tool_runs.values()), by_design, tuple(differences)
    )


def _lines(outputs: Mapping[str, int]) -> Iterator[str]:
    return (line for output in outputs for line in output.splitlines())


def _without(rules: Sequence[Designed], output: str) -> str:
    return "\n".join(
        line for line in output.splitlines() if not any(rule.lines.fullmatch(line) for rule in rules)
    )  # fmt: skip


def page(comparisons: Mapping[str, Comparison], command: str, machine: str, commit: str) -> str:
    """The page of evidence in Markdown."""
    rows = [
        f"| {name} | {each.outputs} | {each.runs} | {each.repetitions} | {each.tool_runs} |"
        f" {sum(each.by_design.values())} | {len(each.differences)} |"
        for name, each in comparisons.items()
    ]
    reasons: Counter[str] = Counter()
    for each in comparisons.values():
        reasons.update(each.by_design)
    differences = [difference for each in comparisons.values() for difference in each.differences]
    lines = [
        "# Kafka's tools under kframe and under Kafka's controller",
        "",
        "Each call of a tool ran on the same cluster, first under Kafka's own controller, then under kframe, as every",
        "principal: `kafka` (super user), `alice` (some ACLs), `eve` (none), anonymous. An output counts as different",
        "if it did not come under Kafka's controller. Ports, times, ids of tokens, sizes and rates are left out, and",
        "lines are put in order, because tools print what hash tables hold.",
        "",
        f"- command: `{command}`",
        f"- machine: {machine}",
        f"- commit: {commit}",
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


def _described(difference: Difference) -> str:
    expected = difference.expected[0] if difference.expected else ""
    before = set(expected.splitlines())
    after = set(difference.output.splitlines())
    changed = [f"    - {line}" for line in sorted(before - after)] + [
        f"    + {line}" for line in sorted(after - before)
    ]
    return "\n".join(
        [f"- {difference.setup}, {difference.client}, {difference.count} times: `{difference.step}`", "", *changed, ""]
    )
