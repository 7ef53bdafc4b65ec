"""Support for tests: random records, fuzz targets, and Kafka's Java classes as the reference."""
