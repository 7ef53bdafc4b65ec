"""Reassignment plans of kframe, Kafka, LinkedIn's kafka-tools, KAFKA-19048 and solvers, side by side."""
