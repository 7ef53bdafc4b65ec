"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int32

def read_kcat_topics(
    text: bytes,
    start: int,
    state: int,
    topics: Int32,
    partition: Int32,
    leader: Int32,
    counts: Int32,
    values: Int32,
    result: Int32,
) -> int: ...
