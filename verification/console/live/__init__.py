"""Brokers of real clusters are killed, and pages of a console in Chromium show it without being loaded again."""
