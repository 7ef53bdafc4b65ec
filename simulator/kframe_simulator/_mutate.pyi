"""See the .pyx file of the same name for shapes and for what is IN or OUT."""

from kframe.model.columns import Int64, UInt8

def mutate(
    corpus: UInt8,
    corpus_offsets: Int64,
    pieces: UInt8,
    piece_offsets: Int64,
    seed: int,
    first: int,
    max_length: int,
    case_offsets: Int64,
    out: UInt8,
) -> int: ...
