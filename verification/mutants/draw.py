"""Draws mutants of a package with cosmic-ray's operators and prints them: ``draw.py PACKAGE SEED COUNT``.

It runs in cosmic-ray's environment, in the folder whose modules are mutated. Each line is a mutant in JSON. Mutants of
annotations are not drawn, as no code evaluates them, nor those of ``assert``, of ``strict`` of ``zip``, and of
``frozen`` and ``slots`` of a dataclass, which reject nothing in a program without defects. Operators offer many mutants
of one position; at most one of them is drawn, and none that does not compile without a warning. The first mutants of a
larger draw are those of a smaller one.
"""

from __future__ import annotations

import ast
import json
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

#: A line from 1 and a column from 0.
Position: TypeAlias = tuple[int, int]
#: Keywords by function that only reject defects.
_CHECKS = {"dataclass": ("frozen", "slots"), "zip": ("strict",)}


@dataclass(frozen=True, order=True, slots=True)
class Candidate:
    """A mutant that an operator offers: its ``occurrence`` among those of the operator in the file."""

    file: str
    position: Position
    operator: str
    occurrence: int
    function: str


def draw(package: str, seed: str) -> Iterator[tuple[Candidate, str]]:
    """Yield mutants of the package with their sources in random order: one of each position."""
    by_position = defaultdict(list)
    for path in sorted(Path(package).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        ranges = _not_mutated(source)
        for candidate in _candidates(str(path), source):
            if not any(first <= candidate.position < last for first, last in ranges):
                by_position[candidate.file, candidate.position].append(candidate)
    random = Random(seed)
    positions = sorted(by_position)
    random.shuffle(positions)
    for position in positions:
        candidates = sorted(by_position[position])
        random.shuffle(candidates)
        for candidate in candidates:
            mutated = _mutated(candidate)
            if mutated is not None:
                yield candidate, mutated
                break


def _mutated(candidate: Candidate) -> str | None:
    """Return the source of a mutant, None if it does not compile without a warning."""
    source = Path(candidate.file).read_text(encoding="utf-8")
    mutated: str = mutate_code(source, get_operator(candidate.operator)(), candidate.occurrence)
    with warnings.catch_warnings(action="error"):
        try:
            compile(mutated, candidate.file, "exec")
        except SyntaxError:
            return None
    return mutated


def _candidates(file: str, source: str) -> Iterator[Candidate]:
    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        operator = get_operator(name)
        if operator.arguments():
            continue
        positions = ((node, start) for node in nodes for start, _ in operator().mutation_positions(node))
        for occurrence, (node, start) in enumerate(positions):
            yield Candidate(file, start, name, occurrence, ASTQuery(node).get_definition_name() or "")


def _not_mutated(source: str) -> list[tuple[Position, Position]]:
    """Return the first and the last position of each expression of a module that is not mutated."""
    nodes: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg | ast.AnnAssign):
            nodes.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            nodes.append(node.returns)
        elif isinstance(node, ast.Assert):
            nodes.append(node.test)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            checks = _CHECKS.get(node.func.id, ())
            nodes += [keyword.value for keyword in node.keywords if keyword.arg in checks]
    return [
        ((node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0))
        for node in nodes
        if node is not None
    ]


def describe(candidate: Candidate, mutated: str) -> dict[str, Any]:
    """Return the mutant: its source, the changed lines, and its statement."""
    source = Path(candidate.file).read_text(encoding="utf-8")
    changes = list(unified_diff(source.splitlines(), mutated.splitlines(), n=0))[2:]
    first, last, is_in_function = _statement(source, candidate.position)
    return {
        "file": candidate.file,
        "line": candidate.position[0],
        "function": candidate.function,
        "operator": candidate.operator.removeprefix("core/"),
        "occurrence": candidate.occurrence,
        "before": _joined(changes, "-"),
        "after": _joined(changes, "+"),
        "first_line": first,
        "last_line": last,
        "is_in_function": is_in_function,
        "source": mutated,
    }


def _joined(changes: list[str], sign: str) -> str:
    lines = (line[1:].strip() for line in changes if line.startswith(sign))
    return " / ".join(filter(None, lines))


def _statement(source: str, position: Position) -> tuple[int, int, bool]:
    """Return the lines of the innermost statement, of a compound one the header, and if it is in a function."""
    line = position[0]
    first, last, is_in_function = 1, 1, False
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt | ast.ExceptHandler)]
    # Parents precede their children.
    for node in nodes:
        header = _header(node)
        if header[0] <= line <= (node.end_lineno or node.lineno):
            first, last = header
            if isinstance(node, ast.FunctionDef) and line > last:
                is_in_function = True
    return first, last, is_in_function


def _header(node: ast.stmt | ast.ExceptHandler) -> tuple[int, int]:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    body = getattr(node, "body", None)
    return first, max(node.lineno, body[0].lineno - 1) if body else (node.end_lineno or node.lineno)


if __name__ == "__main__":
    package, seed, count = sys.argv[1:]
    for candidate, mutated in islice(draw(package, seed), int(count)):
        print(json.dumps(describe(candidate, mutated)))
