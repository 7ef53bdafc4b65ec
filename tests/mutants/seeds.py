"""``python -m tests.mutants.seeds 1..2000``: seeds of the simulator in turn until the first violation, as JSON."""

from __future__ import annotations

import importlib
import json
import sys


def main(seeds: str) -> dict[str, object]:
    """The first seed that breaks an invariant, or at which something is raised; or how many did not."""
    first, _, last = seeds.partition("..")
    # What mutants are run on may be a tree from before there was a simulator.
    play_seed = importlib.import_module("kframe.sim.run").play_seed
    for seed in range(int(first), int(last or first) + 1):
        try:
            violations = play_seed(seed).violations
        except Exception as error:
            return {"seed": seed, "invariant": type(error).__name__, "problem": str(error)}
        if violations:
            return {"seed": seed, "invariant": violations[0].number, "problem": violations[0].problem}
    return {"played": int(last or first) - int(first) + 1}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
