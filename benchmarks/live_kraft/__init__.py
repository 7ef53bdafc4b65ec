"""Kafka 4.4's controller and kframe as running KRaft controllers, measured from outside."""
