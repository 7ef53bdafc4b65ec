"""The types of the compiled module; the .pyx file has the shapes, and what is IN or OUT."""

from kframe.model.arrays import Int16, Int32, Int64, UInt8

def fit_sections(
    offsets: Int32,
    rows: Int32,
    first: int,
    byte_limit: int,
    group_limit: int,
    tail_max: int,
    entry_size: Int32,
    topic: Int32,
    name_offsets: Int32,
    grouped: bool,
    compact: bool,
    with_topic_ids: bool,
    row_topic: Int32,
    row_size: Int32,
    section_list: Int32,
    section_start: Int32,
    section_items: Int32,
    section_length: Int64,
) -> int: ...
def frame_sections(
    section_start: Int32,
    section_items: Int32,
    section_length: Int64,
    section_offset: Int64,
    row_topic: Int32,
    row_size: Int32,
    name_offsets: Int32,
    names: bytes,
    topic_ids: UInt8,
    grouped: bool,
    compact: bool,
    with_topic_ids: bool,
    tail: bytes,
    entry_offset: Int64,
    out: UInt8,
) -> int: ...
def measure_live_leaders(
    section_start: Int32,
    rows: Int32,
    leader: Int16,
    leader_size: Int32,
    max_leaders: int,
    compact: bool,
    last_section: Int32,
    tail_length: Int64,
) -> int: ...
def write_live_leaders(
    section_start: Int32,
    rows: Int32,
    leader: Int16,
    leader_size: Int32,
    leader_brokers: Int32,
    leader_bytes: bytes,
    compact: bool,
    section_offset: Int64,
    tail_length: Int64,
    last_section: Int32,
    out: UInt8,
) -> int: ...
