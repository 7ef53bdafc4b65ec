"""A run as a file that can be replayed, and a plan as a scenario."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from kframe.errors import InputError
from kframe.model.texts import short_repr
from kframe.scenario.format import SCHEMA as SCENARIO
from kframe.snapshot.decode import decode, refuse_repeated_keys
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
    """A run as plain values, without the schema."""
    return {
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
    path.write_text(f"{json.dumps({'schema': SCHEMA, **run_document(result)}, indent=1)}\n", encoding="utf-8")


class _SavedRun(msgspec.Struct):
    """The fields of a saved run that a replay needs."""

    schema: Literal["kframe.sim-run/v1"]
    seed: int
    options: Options
    plan: list[dict[str, Any]]
    trace: str


_RUN: Final = msgspec.json.Decoder(_SavedRun)


def read_run(path: Path) -> tuple[Options, tuple[Action, ...], str]:
    """Options, plan and trace of a saved run. Raises InputError."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(str(path), error.strerror or "an unreadable file", "a run that was written down") from error
    run = decode(_RUN, raw, str(path), InputError)
    refuse_repeated_keys(raw, str(path), InputError)
    if run.seed != run.options.seed:
        raise InputError(f"{path} field seed", str(run.seed), f"{run.options.seed}, the seed of the options")
    plan = tuple(_action(fields, f"{path} field plan[{number}]") for number, fields in enumerate(run.plan))
    return run.options, plan, run.trace


def _action(fields: Mapping[str, Any], where: str) -> Action:
    try:
        action = Action.read(fields)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(where, short_repr(fields), "an action with at_ms and kind") from error
    if action.kind not in CLASS_OF:
        raise InputError(f"{where}.kind", repr(action.kind), "one of " + ", ".join(sorted(CLASS_OF)))
    return action


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
