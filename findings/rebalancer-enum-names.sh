#!/usr/bin/env bash
# rebalancer 1.0.4 (Meta's assignment solver): names of enumerations are refused, numbers are taken.
#
# The type hints of the package (rebalancer.specs) list the names of every enumeration, such as "MAX" and "MIN" of a
# bound, "ABSOLUTE" of a limit or "HIGHS" of a solver, and say that these names are the format. The compiled part
# takes only numbers, those of Thrift files that the wheel does not contain. The message does not show the value.
#
# Seen: RuntimeError: "" is not a valid int, for each name; no error for its number.
source "$(dirname "$0")/common/setup.sh"
newer_python 12
python_packages rebalancer==1.0.4
result=$(python - 2>/dev/null <<'EOF'
from rebalancer import ProblemSolver


def answer(method, spec):
    solver = ProblemSolver("example", "example")
    solver.set_object_name("task").set_container_name("host").set_assignment({"a": ["1", "2"], "b": []})
    solver.add_object_dimension("size", {"1": 1.0, "2": 1.0})
    solver.add_partition("job", {"first": ["1", "2"]})
    try:
        getattr(solver, method)(spec)
    except RuntimeError as error:
        return str(error)
    return "taken"


count = {"name": "count", "scope": "host", "partitionName": "job"}
for name, number in (("MAX", 1), ("MIN", 2)):
    for value in (name, number):
        print("bound", value, answer("add_constraint", {"groupCountSpec": {**count, "bound": value}}))
for value in ("ABSOLUTE", 1):
    print("limit", value, answer("add_constraint", {"groupCountSpec": {**count, "limit": {"type": value}}}))
for value in ("HIGHS", 2):
    print("solver", value, answer("add_solver", {"optimalSolverSpec": {"solverPackage": value}}))
EOF
)
check "enumerations by name and by number" 'bound MAX "" is not a valid int
bound 1 taken
bound MIN "" is not a valid int
bound 2 taken
limit ABSOLUTE "" is not a valid int
limit 1 taken
solver HIGHS "" is not a valid int
solver 2 taken' "$result"
