"""Configurations of topics, brokers, client metrics and groups, and the ELRs that their changes clear.

Kafka: ``ConfigurationControlManager`` and ``ControllerConfigurationValidator``.
"""
