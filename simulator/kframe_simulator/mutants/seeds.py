"""``python -m kframe_simulator.mutants.seeds 1..2000``: play seeds up to the first violation.

Only a broken invariant ends the search. A seed at which the simulation itself raises something, or does not end, proves
less: the first of those is told beside.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Final

#: A seed takes an eighth of a second, and half a minute where the simulation does not come to rest, which is a
#: violation. Seconds of the process, so that a busy machine changes nothing.
CPU_S_MOST: Final = 120.0


class Endless(BaseException):
    """A seed has used ``CPU_S_MOST``. No Exception: controllers survive those."""


def main(seeds: str) -> dict[str, object]:
    """The first seed that breaks an invariant, with its number (``seed``, ``invariant``, ``problem``), or how many did
    not (``played``); ``raised`` is the first seed at which something was raised, and what."""
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
            if isinstance(error, Endless):  # so would the others be
                return {"played": seed - first} | raised
            continue
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        if violations:
            return {"seed": seed, "invariant": violations[0].number, "problem": violations[0].problem} | raised
    return {"played": last - first + 1} | raised


def span(seeds: str) -> tuple[int, int]:
    """The first and last seed of ``A..B``, or of one."""
    first, _, last = seeds.partition("..")
    return int(first), int(last or first)


def _give_up(_signal: int, _frame: object) -> None:
    raise Endless(f"no end within {CPU_S_MOST:.0f} s")


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
