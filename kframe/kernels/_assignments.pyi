"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int32

def read_assignments(
    text: bytes,
    start: int,
    topics: Int32,
    partition: Int32,
    counts: Int32,
    log_dirs: Int32,
    values: Int32,
    result: Int32,
) -> int: ...
