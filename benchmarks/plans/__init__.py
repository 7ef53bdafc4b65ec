"""Reassignment plans of kframe, Kafka, LinkedIn's kafka-tools, KAFKA-19048 and an exact solver, side by side."""
