from kframe.plugin.columns import Int32

def scan_response(
    reply: bytes, offset: int, flexible: bool, by_topic_id: bool, max_partitions: int, errors: Int32, counts: Int32
) -> int: ...
