"""Benchmarks of kframe, alone (``make bench``) and beside Kafka's own controllers (``benchmarks.against_kafka``)."""
