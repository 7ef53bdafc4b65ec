"""``python -m kframe_simulator.mutants.seeds 1..2000``: play seeds up to the first violation.

Only a broken invariant ends the search. An exception in the simulation, or a timeout, proves less: the output has the
first such seed in addition.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Final

#: The CPU time limit of a seed. A seed takes 0.125 s, or 30 s if the simulation does not come to rest, which is a
#: violation. CPU time does not depend on the load of the machine.
CPU_S_MOST: Final = 120.0


class Endless(BaseException):
    """A seed has used ``CPU_S_MOST``. This is no Exception, because controllers catch those."""


def main(seeds: str) -> dict[str, object]:
    """The first seed that breaks an invariant (``seed``, ``invariant``, ``problem``), or the number of seeds that
    passed (``played``). ``raised`` is the first seed that raised, with its exception."""
    first, last = span(seeds)
    # Imported here, because only a process that plays seeds needs the simulator.
    from kframe_simulator.simulation.run import play_seed

    signal.signal(signal.SIGVTALRM, _give_up)
    raised: dict[str, object] = {}
    for seed in range(first, last + 1):
        signal.setitimer(signal.ITIMER_VIRTUAL, CPU_S_MOST)
        try:
            violations = play_seed(seed).violations
        except (Exception, Endless) as error:
            raised = raised or {"raised": f"seed {seed}: {type(error).__name__}: {error}"}
            if isinstance(error, Endless):  # The following seeds would run into the limit, too.
                return {"played": seed - first} | raised
            continue
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        if violations:
            return {"seed": seed, "invariant": violations[0].number, "problem": violations[0].problem} | raised
    return {"played": last - first + 1} | raised


def span(seeds: str) -> tuple[int, int]:
    """The first and last seed of ``A..B``, or of a single seed."""
    first, _, last = seeds.partition("..")
    return int(first), int(last or first)


def _give_up(_signal: int, _frame: object) -> None:
    raise Endless(f"no end within {CPU_S_MOST:.0f} s")


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
