"""Broker models in scenarios, and the conversion between their messages and the controller's."""
