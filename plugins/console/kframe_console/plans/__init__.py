"""Plans of this session: requests, generation, comparison, stages and execution."""
