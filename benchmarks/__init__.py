"""kframe beside Kafka's own classes, in turn, on one machine: ``python -m benchmarks`` (``make bench``)."""
