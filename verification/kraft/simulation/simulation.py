"""One cluster from one seed: actions at random times, then rest."""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from kframe.plugin.kraft_controller import topic_requests
from verification.kraft.simulation.actions import FAULTS, REQUESTS, Action
from verification.kraft.simulation.administration import configure_min_isr
from verification.kraft.simulation.cluster import Cluster
from verification.kraft.simulation.options import Options
from verification.kraft.simulation.rest import problems_apart, problems_at_rest

#: How long a cluster without faults may take to come to rest.
_REST_MS: Final = 120_000.0
_LOOK_MS: Final = 3_000.0
#: The first topics are created when brokers have registered, and actions begin later.
_CREATIONS_MS: Final = 2_000.0, 2_100.0
_CONFIGURED_MS: Final = 2_200.0
_ACTIONS_MS: Final = 8_000.0
#: A simulation with more events does not end by itself.
_EVENTS_MAX: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class Result:
    """What a seed has shown. ``trace`` is a digest of the log."""

    seed: int
    violations: tuple[str, ...]
    events: int
    simulated_ms: float
    counts: Counter[str]
    trace: str


def play_alone(options: Options) -> Result:
    """Play a seed in a process that does nothing else, in which files that are left open are a violation.

    Where logs are kept, those of a failure keep its files.
    """
    before = _open_files()
    result = play(options)
    left = sorted(_open_files() - before)
    return replace(result, violations=(*result.violations, f"K6: {left} are left open")) if left else result


def _open_files() -> set[str]:
    """The names of the files that this process has open."""
    gc.collect()
    names = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # The one that lists them.
            names.add(f"{entry.name} {entry.readlink()}")
    return {name for name in names if "/__cluster_metadata" in name or name.endswith(".lock")}


def play(options: Options) -> Result:
    """Play a seed: random actions, the end of the faults, and rest, until nothing is wrong or the time is over."""
    with Cluster(options) as cluster:
        for time_ms in _CREATIONS_MS:
            cluster.scheduler.at(time_ms, partial(_create_topic, cluster))
        cluster.scheduler.at(_CONFIGURED_MS, partial(configure_min_isr, cluster, options.min_isr))
        for table, number in ((FAULTS, options.faults), (REQUESTS, options.requests)):
            plan = sorted(cluster.random.uniform(_ACTIONS_MS, options.duration_ms) for _ in range(number))
            for time_ms in plan:
                action = cluster.random.choices(list(table), list(table.values()))[0]
                cluster.scheduler.at(time_ms, partial(_act, cluster, action))
        _run_until(cluster, options.duration_ms)
        cluster.heal()
        deadline = cluster.scheduler.now_ms + _REST_MS
        problems = ["it has not come to rest"]
        while problems and cluster.scheduler.now_ms < deadline and not cluster.violations:
            _run_until(cluster, cluster.scheduler.now_ms + _LOOK_MS)
            problems = list(problems_at_rest(cluster))
        if not cluster.violations:
            for problem in problems or problems_apart(cluster):
                cluster.report(problem)
        return _result(cluster)


def _create_topic(cluster: Cluster) -> None:
    topic = topic_requests.CreatableTopic(cluster.admin.new_name("t"), 3, min(3, len(cluster.machines)))
    cluster.admin.create_topics([topic])


def _act(cluster: Cluster, action: Action) -> None:
    cluster.counts[f"action {action.__name__}"] += 1
    action(cluster, cluster.random)


def _run_until(cluster: Cluster, time_ms: float) -> None:
    scheduler = cluster.scheduler
    while scheduler.next_ms() <= time_ms and not cluster.violations:
        scheduler.step()
        if scheduler.happened > _EVENTS_MAX:
            cluster.report(f"L2: more than {_EVENTS_MAX:,} events")


def _result(cluster: Cluster) -> Result:
    history, digest = cluster.controllers.history, hashlib.sha256()
    for batch in history.batches:
        digest.update(batch.content)
    counts = cluster.counts + cluster.admin.counts + cluster.controllers.counts
    counts["records acknowledged"] = sum(len(producer.acknowledged) for producer in cluster.producers)
    counts["metadata records"] = history.end
    return Result(
        cluster.options.seed,
        tuple(dict.fromkeys(cluster.violations)),
        cluster.scheduler.happened,
        cluster.scheduler.now_ms,
        counts,
        digest.hexdigest(),
    )
