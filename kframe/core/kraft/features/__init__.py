"""Levels of features such as ``metadata.version`` (Kafka ``FeatureControlManager``)."""
