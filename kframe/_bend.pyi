"""See ``_bend.pyx``, where shapes and what is IN or OUT stand with every argument."""

from kframe.model.columns import Int64, UInt8

def bend(
    corpus: UInt8,
    corpus_at: Int64,
    pieces: UInt8,
    piece_at: Int64,
    seed: int,
    first: int,
    most: int,
    case_at: Int64,
    out: UInt8,
) -> int: ...
