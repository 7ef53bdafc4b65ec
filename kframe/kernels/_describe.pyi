"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int32

def read_describe_lines(
    text: bytes,
    start: int,
    max_line_bytes: int,
    topic: bytes,
    headers: Int32,
    line: Int32,
    partition: Int32,
    leader: Int32,
    masks: Int32,
    counts: Int32,
    values: Int32,
    result: Int32,
) -> int: ...
