"""The requests that a KRaft controller answers: of the quorum, of brokers, and of administrators.

A handler takes the fields of a request, and returns those of its response. ``kframe_kraft.quorum`` and the core decide.
"""
