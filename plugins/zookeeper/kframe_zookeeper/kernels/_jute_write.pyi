from kframe.plugin.columns import Int32, Int64, UInt8

def write_reads(topic: Int32, partition: Int32, name_offsets: Int32, names: UInt8, root: UInt8, out: UInt8) -> int: ...
def write_states(
    topic: Int32,
    partition: Int32,
    name_offsets: Int32,
    names: UInt8,
    root: UInt8,
    acl: UInt8,
    leader: Int32,
    leader_epoch: Int32,
    recovery: UInt8,
    isr_offsets: Int32,
    isr: Int32,
    expected: Int32,
    parent: UInt8,
    controller_epoch: int,
    row_offsets: Int64,
    out: UInt8,
) -> int: ...
