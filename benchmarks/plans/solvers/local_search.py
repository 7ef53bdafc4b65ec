"""A plan by the local search of Meta's Rebalancer. Arguments: a folder, the file for the result, and seconds at most.

Objects are replicas, containers are brokers. A rule that the cluster breaks becomes the first goal, and the least
movement the second. Release 1.0.4 takes the numbers of enumerations, not the names that its type hints have.
"""

from __future__ import annotations

import os
import time
from typing import Any, Final

from benchmarks.plans.solvers.cluster import Cluster, arguments, write_result

ABSOLUTE: Final = 1
MAX: Final = 1
MIN: Final = 2


def count_rule(name: str, scope: str, limit: dict[str, Any]) -> dict[str, Any]:
    """A rule for the replicas of a partition in each item of a scope."""
    rule = {"name": name, "scope": scope, "partitionName": "partition", "bound": MAX, "limit": limit}
    return {"groupCountSpec": rule}


def solve(cluster: Cluster, seconds: float) -> list[list[int]]:
    """The brokers of each partition."""
    from rebalancer import ProblemSolver

    held: dict[str, list[str]] = {str(broker): [] for broker in range(len(cluster.brokers))}
    groups: dict[str, list[str]] = {}
    sizes: dict[str, float] = {}
    for row, (replicas, weight) in enumerate(zip(cluster.replicas, cluster.weights, strict=True)):
        names = groups[str(row)] = [f"{row}/{slot}" for slot in range(len(replicas))]
        for name, broker in zip(names, replicas, strict=True):
            held[str(broker)].append(name)
            sizes[name] = float(weight)
    solver = ProblemSolver("kframe", "benchmarks")
    solver.set_log_level("ERROR")
    solver.set_object_name("replica").set_container_name("broker").set_assignment(held)
    solver.add_object_dimension("load", sizes)
    solver.add_partition("partition", groups)
    solver.add_constraint(count_rule("brokers", "broker", {"type": ABSOLUTE, "globalLimit": 1.0}))
    if max(map(len, cluster.members)) > 1:
        solver.add_scope("rack", {str(broker): str(rack) for broker, rack in enumerate(cluster.racks)})
        shares = {str(row): float(share) for row, share in enumerate(cluster.shares)}
        solver.add_constraint(count_rule("racks", "rack", {"type": ABSOLUTE, "groupLimits": shares}))
    for bound, limits in ((MAX, cluster.upper), (MIN, cluster.lower)):
        by_broker = {str(broker): float(limit) for broker, limit in enumerate(limits)}
        rule = {"name": f"loads {bound}", "scope": "broker", "dimension": "load", "bound": bound}
        solver.add_constraint({"capacitySpec": {**rule, "limit": {"type": ABSOLUTE, "scopeItemLimits": by_broker}}})
    movement = {"name": "movement", "scope": "broker", "dimension": "load", "doNotNormalize": True}
    solver.add_goal({"minimizeMovementSpec": movement}, 1.0, 1)
    moves: list[dict[str, Any]] = [{"singleMoveTypeSpec": {}}, {"swapMoveTypeSpec": {}}]
    solver.add_solver({"localSearchSolverSpec": {"moveTypeList": moves, "solveTime": max(int(seconds), 1)}})
    placed: list[list[int]] = [[] for _ in cluster.replicas]
    for name, broker in solver.solve()["assignment"].items():
        placed[int(name.split("/")[0])].append(int(broker))
    return placed


def main() -> None:
    """Solve on one core, as the other planners, and write."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    cluster, out, end = arguments()
    write_result(cluster, solve(cluster, end - time.monotonic()), out, None)


if __name__ == "__main__":
    main()
