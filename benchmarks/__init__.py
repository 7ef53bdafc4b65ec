"""Benchmarks of kframe, alone (``make bench``) and beside Kafka's own controllers (``make bench-peers``)."""
