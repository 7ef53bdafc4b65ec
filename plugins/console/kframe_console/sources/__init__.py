"""What pages read: readings of a cluster, and where they come from."""
