"""A plan by HiGHS. Arguments: a folder, the file for the result, and seconds at most.

A variable for each partition and broker: in rows, partitions have their replicas, racks at most their share, and
brokers loads within their limits.
"""

from __future__ import annotations

import time

import highspy
import numpy as np
from scipy import sparse

from benchmarks.plans.solvers.cluster import Cluster, arguments, write_result

#: The largest weight in the program, because tolerances of the solver are absolute.
_WEIGHT_MAX = 1000


def model_of(cluster: Cluster) -> highspy.HighsLp:
    """The integer program of a cluster."""
    count, width = len(cluster.replicas), len(cluster.brokers)
    unit = max(max(cluster.weights) / _WEIGHT_MAX, 1.0)
    weight = np.array(cluster.weights) / unit
    factor = np.array([len(replicas) for replicas in cluster.replicas], float)
    held = np.zeros((count, width), bool)
    for row, replicas in enumerate(cluster.replicas):
        held[row, replicas] = True
    rack = sparse.csr_matrix((np.ones(width), (cluster.racks, range(width))))
    rows = [
        sparse.kron(sparse.identity(count), np.ones((1, width)), format="csr"),
        sparse.kron(weight.reshape(1, count), sparse.identity(width), format="csr"),
    ]
    lower = [factor, np.array(cluster.lower) / unit]
    upper = [factor, np.array(cluster.upper) / unit]
    if rack.shape[0] < width:
        rows.append(sparse.kron(sparse.identity(count), rack, format="csr"))
        lower.append(np.zeros(count * rack.shape[0]))
        upper.append(np.repeat(np.array(cluster.shares, float), rack.shape[0]))
    matrix = sparse.vstack(rows, format="csr")
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_ = np.where(held, 0.0, weight[:, None]).ravel()
    model.col_lower_, model.col_upper_ = np.zeros(count * width), np.ones(count * width)
    model.row_lower_, model.row_upper_ = np.concatenate(lower), np.concatenate(upper)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_ = matrix.indptr, matrix.indices
    model.a_matrix_.value_ = matrix.data
    model.integrality_ = [highspy.HighsVarType.kInteger] * (count * width)
    return model


def main() -> None:
    """Build the program, solve, write."""
    cluster, out, end = arguments()
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.passModel(model_of(cluster))
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("time_limit", max(end - time.monotonic(), 1.0))
    solver.run()
    info = solver.getInfo()
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        raise SystemExit(f"HiGHS: {solver.getModelStatus().name}")
    values = np.array(solver.getSolution().col_value).reshape(len(cluster.replicas), -1) > 0.5
    unit = max(max(cluster.weights) / _WEIGHT_MAX, 1.0)
    write_result(cluster, [np.flatnonzero(row).tolist() for row in values], out, info.mip_dual_bound * unit)


if __name__ == "__main__":
    main()
