"""Where plugins meet kframe: hooks, the records that they offer, the registry that resolves names, and the adapters
that turn scalar and native selectors into bulk ones. Nothing in here runs while a controller works."""
