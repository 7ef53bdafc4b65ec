"""Plays seeds: ``python -m verification.kraft.simulation --seeds 1-2000 --record FILE``."""

from __future__ import annotations

import json
import logging
import re
import resource
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from kframe.plugin.commands import progress
from verification.kraft.simulation.options import draw_options
from verification.kraft.simulation.simulation import Result, play_alone
from verification.support.evidence import facts_lines, run_facts

#: One of this many seeds is played twice: both logs must be equal.
TWICE_EVERY: Final = 50
_CHUNK: Final = 4
_TEXT: Final = """# Simulated KRaft clusters

[simulation.md](../explanation/simulation.md#kraft-clusters) says what is simulated, and
[invariants.md](../reference/invariants.md#kraft-quorums) has the rules.

## Defects

- K7, seeds 7, 14 and 19: after a write that a crash had torn, the controller did not start. The next start did, because
  the tail was cut then. The history is read again after the cut (`test_durable_log_crashes`).
- I10, seed 48: a replica that a reassignment removes stays in the ELR. When it was added again, it was elected with an
  empty log. Kafka 4.4 decides so, and so does kframe by default. With `kframe.elr.strict`, which the simulation sets,
  the replica leaves the ELR (`test_strict_rules`).
- I24, seed 1421: Kafka 4.0 stores -1 as the last-known leader of a partition whose ISR becomes empty without a leader.
  In snapshots of kframe it became another broker (`test_snapshot_has_a_last_known_leader_without_a_broker`).

Kafka 4.4 also decides as follows, and so does kframe. The rules allow it:

- A replica that is added and removed at once, by one reassignment over another, stays so until a cancellation.
- A broker whose log directory fails before it is unfenced may be elected for a partition in that directory.
- Two parts of a decision on a heartbeat write the same change twice.
"""


def play_seed(seed: int) -> Result:
    """Play a seed, and some of them twice."""
    logging.disable(logging.CRITICAL)  # Faults that the controller reports are meant here.
    result = play_alone(draw_options(seed))
    if seed % TWICE_EVERY == 0 and play_alone(draw_options(seed)).trace != result.trace:
        result = replace(result, violations=(*result.violations, "I27: the same seed wrote another log"))
    return result


def play_seeds(seeds: Sequence[int], jobs: int) -> Iterator[Result]:
    """Play seeds in several processes."""
    if jobs == 1:
        yield from map(play_seed, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(play_seed, seeds, chunksize=_CHUNK)


def _seeds(context: click.Context, parameter: click.Parameter, value: str) -> range:
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", value)
    if match is None:
        raise click.BadParameter("FIRST-LAST, or one seed")
    return range(int(match[1]), int(match[2] or match[1]) + 1)


@click.command()
@click.option("--seeds", callback=_seeds, default="1-2000", show_default=True, help="FIRST-LAST")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True)
@click.option("--first", is_flag=True, help="End at the first violation.")
@click.option("--cpu-seconds", type=click.IntRange(1), help="Die after so many seconds of the processor.")
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), help="JSON; the page is beside it.")
def main(seeds: range, jobs: int, first: bool, cpu_seconds: int | None, record: Path | None) -> None:
    """Play seeds, and print what they have shown. Exit code 1 after a violation."""
    if cpu_seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    facts = run_facts(f"python -m verification.kraft.simulation --seeds {seeds[0]}-{seeds[-1]} --jobs {jobs}")
    started, counts = time.monotonic(), Counter[str]()
    events, simulated_ms, violations = 0, 0.0, dict[int, tuple[str, ...]]()
    with progress("seeds") as tick:
        for number, result in enumerate(play_seeds(seeds, jobs)):
            tick(number, len(seeds))
            counts += result.counts
            events, simulated_ms = events + result.events, simulated_ms + result.simulated_ms
            if result.violations:
                violations[result.seed] = result.violations
                click.echo(f"seed {result.seed}: {result.violations[0]}", err=True)
                if first:
                    raise click.exceptions.Exit(1)
    document = {
        **facts,
        "seeds": [seeds[0], seeds[-1]],
        "seconds": round(time.monotonic() - started),
        "events": events,
        "simulated_seconds": round(simulated_ms / 1000),
        "counts": dict(sorted(counts.items())),
        "violations": {str(seed): list(texts) for seed, texts in violations.items()},
    }
    if record is not None:
        record.write_text(json.dumps(document, indent=1) + "\n")
        record.with_suffix(".md").write_text(page(document))
    click.echo(page(document))
    click.get_current_context().exit(1 if violations else 0)


def page(document: Mapping[str, Any]) -> str:
    """The page of a record, in Markdown."""
    first, last = document["seeds"]
    lines = [
        _TEXT,
        "## Result",
        "",
        f"- Seeds {first} to {last}: {len(document['violations'])} with a violation.",
        f"- {document['events']:,} events in {document['simulated_seconds']:,} simulated seconds.",
        f"- Duration: {document['seconds'] / 60:.0f} minutes.",
        *facts_lines(document),
        "",
        "| what | times |",
        "|---|---|",
        *(f"| {name} | {count:,} |" for name, count in document["counts"].items()),
        *(["", *(f"- Seed {seed}: {texts[0]}" for seed, texts in document["violations"].items())]),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
