"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int32

def read_znode_lines(
    text: bytes,
    start: int,
    max_line_bytes: int,
    groups: Int32,
    assigned: Int32,
    replicas: Int32,
    line: Int32,
    numbers: Int32,
    counts: Int32,
    values: Int32,
    result: Int32,
) -> int: ...
