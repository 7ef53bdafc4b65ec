"""Events that come from brokers: registration, failure, controlled shutdown, AlterPartition, answers to requests."""
