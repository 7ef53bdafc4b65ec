"""What-if operations on KRaft clusters, decided by the rules of Kafka 4.4's controller (``kframe.core.kraft``)."""
