"""Alert rules and dashboard name only metrics and labels that a controller exports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
import yaml
from kframe_kafka_wire.server.drops import DroppedConnections
from prometheus_client import REGISTRY

from kframe.runtime import metrics
from kframe.runtime.samples import Samples
from kframe.testing.waiting import wait_until
from tests.architecture.source import ROOT
from tests.runtime.test_metrics import SilentHarness
from verification.kraft.served_controller import formatted, served

DEPLOY: Final = ROOT / "deploy"
RULES: Final = yaml.safe_load((DEPLOY / "prometheus" / "kframe.rules.yml").read_text())["groups"]
ALERTS: Final = {rule["alert"]: rule for group in RULES for rule in group["rules"]}
DASHBOARD: Final = json.loads((DEPLOY / "grafana" / "kframe.json").read_text())
#: Labels that Prometheus adds to each series, and the metric that it makes for each target.
TARGET_LABELS: Final = frozenset({"__name__", "job", "instance"})
TARGET_METRIC: Final = "up"

SELECTOR: Final = re.compile(r"(?P<name>[a-z_][a-z0-9_]*)?\{(?P<matchers>[^}]*)\}")
MATCHER: Final = re.compile(r'\s*(?P<label>\w+)(?P<operator>=~|!~|!=|=)"(?P<value>[^"]*)"\s*')
GROUPING: Final = re.compile(r"\bby \((?P<labels>[^)]*)\)")
TEMPLATE: Final = re.compile(r"\{\{\s*(?:\$labels\.)?(?P<label>\w+)\s*\}\}|\$labels\.(?P<other>\w+)")


def exported() -> dict[str, dict[str, set[str]]]:
    """Return the values of each label, by name of the metric."""
    loop = SilentHarness().loop
    status = replace(loop.status(), selector_faults={"rack-spread": 1}, observer_failures={"audit": 1})
    timers = metrics.Timers()
    measured = metrics.measure(status, timers, Samples(), {}, 0)
    with TemporaryDirectory() as folder, served(formatted(Path(folder))) as controller:
        wait_until(lambda: not controller.problems())
        quorum = controller.metrics()
    lines = [*loop.metrics(), *measured, *DroppedConnections().metrics(), *quorum]
    process = [sample for family in REGISTRY.collect() for sample in family.samples]
    lines += [f"{sample.name}{{{','.join(f'{k}={v!r}' for k, v in sample.labels.items())}}}" for sample in process]
    names: dict[str, dict[str, set[str]]] = {TARGET_METRIC: {}}
    for line in lines:
        name, _, text = line.partition("{")
        labels = names.setdefault(name, {})
        for label, value in re.findall(r"""(\w+)=["']([^"']*)["']""", text):
            labels.setdefault(label, set()).add(value)
    return names


EXPORTED: Final = exported()


def unknown_names(expression: str, known: Mapping[str, Mapping[str, set[str]]] = EXPORTED) -> Iterator[str]:
    """Yield the metrics, labels and label values of a PromQL expression that no instance exports."""
    labels: set[str] = set(TARGET_LABELS)
    for selector in SELECTOR.finditer(expression):
        matchers = [match for text in selector["matchers"].split(", ") if (match := MATCHER.fullmatch(text))]
        if len(matchers) != len(selector["matchers"].split(", ")):
            yield f"matchers {selector['matchers']}"
        pattern = selector["name"] or next((match["value"] for match in matchers if match["label"] == "__name__"), "")
        metrics_named = [name for name in known if re.fullmatch(pattern, name)]
        if not metrics_named:
            yield f"metric {pattern}"
        values: dict[str, set[str]] = {}
        for name in metrics_named:
            for label, exported_values in known[name].items():
                values.setdefault(label, set()).update(exported_values)
        labels |= values.keys()
        for match in matchers:
            if match["label"] in TARGET_LABELS:
                continue
            alternatives = match["value"].split("|") if "~" in match["operator"] else [match["value"]]
            yield from (
                f"{match['label']}={text}" for text in alternatives if text not in values.get(match["label"], ())
            )
    for grouping in GROUPING.finditer(expression):
        yield from (f"label {label}" for label in grouping["labels"].split(", ") if label not in labels)
    bare = re.sub(r'"[^"]*"', "", SELECTOR.sub("", expression))
    yield from (f"metric {name}" for name in re.findall(r"\b(?:kafka|kframe|process)_\w+", bare) if name not in known)


def panels() -> list[dict[str, Any]]:
    """Return the panels of the dashboard that are not rows."""
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def grouped_labels(expression: str) -> frozenset[str]:
    """Return the labels that the result of an expression has: those of ``by``, or those of its metrics."""
    groupings = GROUPING.findall(expression)
    if groupings:
        return frozenset(label for text in groupings for label in text.split(", "))
    names = [selector["name"] for selector in SELECTOR.finditer(expression)]
    return TARGET_LABELS | {label for name in names for label in EXPORTED.get(name, {})}


@pytest.mark.parametrize("alert", ALERTS)
def test_alerts_name_exported_metrics_and_labels(alert: str) -> None:
    rule = ALERTS[alert]
    assert list(unknown_names(rule["expr"])) == []
    used = {
        match["label"] or match["other"] for text in rule["annotations"].values() for match in TEMPLATE.finditer(text)
    }
    assert used <= grouped_labels(rule["expr"])
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: str(panel["title"]))
def test_panels_name_exported_metrics_and_labels(panel: dict[str, Any]) -> None:
    assert panel["targets"]
    for target in panel["targets"]:
        assert list(unknown_names(target["expr"])) == []
        used = {match["label"] for match in TEMPLATE.finditer(target["legendFormat"])}
        assert used <= grouped_labels(target["expr"])
    references = [target["refId"] for target in panel["targets"]]
    assert len(set(references)) == len(references)


def test_variables_and_annotations_name_exported_metrics() -> None:
    queries = [
        variable["query"]["query"] for variable in DASHBOARD["templating"]["list"] if variable["type"] == "query"
    ]
    queries += [annotation["expr"] for annotation in DASHBOARD["annotations"]["list"]]
    assert queries
    assert [name for query in queries for name in unknown_names(query)] == []


def test_panels_do_not_overlap() -> None:
    cells = [
        (x, y)
        for position in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(position["x"], position["x"] + position["w"])
        for y in range(position["y"], position["y"] + position["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24, "a dashboard has 24 columns"
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
