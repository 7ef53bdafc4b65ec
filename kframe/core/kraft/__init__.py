"""The rules of KRaft's controller: pure functions from metadata and an event to records (Kafka 4.4)."""
