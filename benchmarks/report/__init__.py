"""Pages, plots and comparisons made from kept records."""
