"""A run as a file that can be replayed, and a plan as a scenario."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from kframe.errors import InputError
from kframe.scenario.format import SCHEMA as SCENARIO
from kframe_simulator.faults.plan import CLASS_OF, Action
from kframe_simulator.simulation.building import FETCH_MS, LAG_MS, rack_of
from kframe_simulator.simulation.options import Options, TopicOptions
from kframe_simulator.simulation.recorder import PlayedStep
from kframe_simulator.simulation.simulation import Result

SCHEMA: Final = "kframe.sim-run/v1"
#: The settings of all brokers of a simulation, by Kafka's keys.
BROKERS_CONFIG: Final[dict[str, object]] = {
    "replica.lag.time.max.ms": int(LAG_MS),
    "replica.fetch.wait.max.ms": int(FETCH_MS),
}


def run_document(result: Result) -> dict[str, Any]:
    """A run as plain values."""
    return {
        "schema": SCHEMA,
        "seed": result.options.seed,
        "options": result.options.to_dict(),
        "plan": [action.to_dict() for action in result.plan],
        "events": result.events,
        "simulated_seconds": round(result.simulated_ms / 1000.0, 3),
        "trace": result.trace,
        "violations": [
            {
                "invariant": violation.number,
                "problem": violation.problem,
                "at_ms": violation.at_ms,
                "event": violation.event,
            }
            for violation in result.violations
        ],
    }


def write_run(path: Path, result: Result) -> None:
    """Save a run."""
    path.write_text(f"{json.dumps(run_document(result), indent=1)}\n", encoding="utf-8")


def read_run(path: Path) -> tuple[Options, tuple[Action, ...], Mapping[str, Any]]:
    """Options and plan of a saved run, and its complete content. Raises InputError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        options = msgspec.convert(document["options"], Options)
        plan = tuple(Action.read(item) for item in document["plan"])
    except OSError as error:
        raise InputError(str(path), error.strerror or "an unreadable file", "a run that was written down") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(str(path), f"{type(error).__name__} {error}", f"a run ({SCHEMA})") from error
    for action in plan:
        if action.kind not in CLASS_OF:
            raise InputError(f"{path}: plan", f"action {action.kind!r}", "one of " + ", ".join(sorted(CLASS_OF)))
    return options, plan, document


def scenario_text(options: Options, played_steps: Sequence[PlayedStep], end_ms: float) -> str:
    """The run until ``end_ms`` as a scenario (``kframe.scenario/v1``), for people and for regression tests.

    A scenario has one controller, no delays, and no faults of network or storage. Actions with such faults become
    comments, and the scenario does not reproduce their effects.
    """
    lines = [
        f"# What seed {options.seed} of the simulator played. Faults that a scenario cannot tell are comments.",
        f"schema: {SCENARIO}",
        f"name: seed-{options.seed}",
        f"config: {json.dumps(options.config | BROKERS_CONFIG)}",
        "brokers_replicate: true",
        "brokers:",
        *(f"  - {json.dumps(_broker(options, broker))}" for broker in options.brokers),
        "topics:",
        *(f"  - {json.dumps(_topic(topic))}" for topic in options.topics),
        "steps:",
        "  - elect: {}",
    ]
    before = 0.0
    for now_ms, action, step in played_steps:
        if step is None:
            assert action is not None
            lines.append(f"  # at {now_ms:.0f} ms: {action.kind} {json.dumps(dict(action.arguments))}")
            continue
        if now_ms > before:
            lines.append(f"  - advance: {round((now_ms - before) / 1000.0, 3)}")
            before = now_ms
        lines += [f"  - {kind}: {json.dumps(argument)}" for kind, argument in step.items()]
    return "\n".join([*lines, f"  - advance: {round((end_ms - before) / 1000.0, 3)}", ""])


def _broker(options: Options, broker_id: int) -> dict[str, Any]:
    rack = rack_of(options, broker_id)
    return {"id": broker_id} | ({} if rack is None else {"rack": rack})


def _topic(topic: TopicOptions) -> dict[str, Any]:
    return {
        "name": topic.name,
        "config": {"unclean.leader.election.enable": topic.unclean, "min.insync.replicas": topic.min_insync},
        "partitions": [
            {"partition": number, "replicas": list(replicas)} for number, replicas in enumerate(topic.assignments)
        ],
    }
