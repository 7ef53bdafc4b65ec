"""State that an active controller keeps beside the cluster's columns: replica index, gauges, acknowledgements."""
