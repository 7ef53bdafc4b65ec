from kframe.plugin.columns import Int32, Int64, UInt8

def parse_topics(
    reply: UInt8,
    data_offset: Int64,
    data_length: Int32,
    entries: Int32,
    values: Int32,
    partitions: Int32,
    topic_id: UInt8,
    replica_count: Int32,
    duplicates: UInt8,
    replicas: Int32,
    parsed: UInt8,
) -> int: ...
