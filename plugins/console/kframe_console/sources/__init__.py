"""Sources of the pages: readings of a cluster and of its controllers."""
