"""A strict decoder and an encoder for each znode, byte for byte as in Kafka 3.9.

All are pure functions between bytes and records. A decoder raises ZnodeError and nothing else.
"""
