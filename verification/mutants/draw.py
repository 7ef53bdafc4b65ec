"""Replaces the mutants of a cosmic-ray session by a draw: ``draw.py SESSION SEED COUNT``.

It runs in cosmic-ray's environment, in the folder whose modules are mutated. Mutants of annotations are not drawn: no
code evaluates them. Operators offer many mutants of one position; at most one of them is drawn.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from random import Random
from typing import TypeAlias

from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import MutationSpec, WorkItem

#: A line from 1 and a column from 0.
Position: TypeAlias = tuple[int, int]


def draw(items: list[WorkItem], seed: str, count: int) -> list[WorkItem]:
    """Return ``count`` of the items, or one of each position if there are fewer. Equal items and seeds: equal draws."""
    by_position = defaultdict(list)
    for item in items:
        (mutation,) = item.mutations
        if not _is_annotation(mutation):
            by_position[str(mutation.module_path), tuple(mutation.start_pos)].append(item)
    random = Random(seed)
    positions = random.sample(sorted(by_position), min(count, len(by_position)))
    return [random.choice(sorted(by_position[position], key=_operator)) for position in positions]


def _operator(item: WorkItem) -> tuple[str, int]:
    (mutation,) = item.mutations
    return str(mutation.operator_name), int(mutation.occurrence)


def _is_annotation(mutation: MutationSpec) -> bool:
    start: Position = tuple(mutation.start_pos)
    return any(first <= start < last for first, last in _annotations(mutation.module_path))


@cache
def _annotations(path: Path) -> list[tuple[Position, Position]]:
    """Return the first and the last position of each annotation of a module."""
    nodes: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.arg | ast.AnnAssign):
            nodes.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            nodes.append(node.returns)
    return [
        ((node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0))
        for node in nodes
        if node is not None
    ]


if __name__ == "__main__":
    session, seed, count = sys.argv[1:]
    with use_db(session) as database:
        selected = draw(list(database.work_items), seed, int(count))
        database.clear()
        database.add_work_items(selected)
