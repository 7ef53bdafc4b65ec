from kframe.plugin.columns import Int32, Int64, UInt8

def split_reads(
    reply: UInt8,
    start: int,
    code: Int32,
    data_offset: Int64,
    data_length: Int32,
    version: Int32,
    czxid: Int64,
    mzxid: Int64,
    owner: Int64,
) -> int: ...
def split_results(reply: UInt8, start: int, code: Int32, version: Int32) -> int: ...
def parse_states(
    reply: UInt8,
    data_offset: Int64,
    data_length: Int32,
    leader: Int32,
    leader_epoch: Int32,
    controller_epoch: Int32,
    recovery: UInt8,
    isr_count: Int32,
    isr: Int32,
    parsed: UInt8,
) -> int: ...
