"""A plan by CP-SAT of OR-Tools. Arguments: a folder, the file for the result, and seconds at most."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.plans.solvers.cluster import arguments, write_result


def main() -> None:
    """Build the model, solve, write."""
    from ortools.sat.python import cp_model

    cluster, out, end = arguments()
    model = cp_model.CpModel()
    brokers = range(len(cluster.brokers))
    holds: list[list[Any]] = [[model.new_bool_var("") for _ in brokers] for _ in cluster.replicas]
    members, crowds = cluster.members, max(map(len, cluster.members)) > 1
    for row, replicas, share in zip(holds, cluster.replicas, cluster.shares, strict=True):
        model.add(cp_model.LinearExpr.sum(row) == len(replicas))
        for inside in members if crowds else ():
            model.add(cp_model.LinearExpr.sum([row[broker] for broker in inside]) <= share)
        for broker in replicas:
            model.add_hint(row[broker], True)
    for broker in brokers:
        load = cp_model.LinearExpr.weighted_sum([row[broker] for row in holds], cluster.weights)
        model.add_linear_constraint(load, cluster.lower[broker], cluster.upper[broker])
    moved = [
        (row[broker], weight)
        for row, replicas, weight in zip(holds, cluster.replicas, cluster.weights, strict=True)
        for broker in brokers
        if broker not in replicas
    ]
    model.minimize(cp_model.LinearExpr.weighted_sum([cell for cell, _ in moved], [weight for _, weight in moved]))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = max(end - time.monotonic(), 1.0)
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise SystemExit(f"CP-SAT: {solver.status_name(status)}")
    placed = [[broker for broker in brokers if solver.boolean_value(row[broker])] for row in holds]
    write_result(cluster, placed, out, solver.best_objective_bound)


if __name__ == "__main__":
    main()
