from kframe.plugin.columns import Int32

def scan_answer(
    reply: bytes, at: int, flexible: bool, grouped: bool, most: int, errors: Int32, counts: Int32
) -> int: ...
