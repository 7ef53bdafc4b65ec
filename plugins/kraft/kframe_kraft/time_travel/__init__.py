"""The metadata log over time: its records as rows, the cluster at any offset, differences and causes of changes."""
