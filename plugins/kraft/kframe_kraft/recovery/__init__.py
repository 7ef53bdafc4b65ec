"""Comparison of the logs of controllers, and recovery of a lost quorum from one of them."""
