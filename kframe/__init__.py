"""kframe: a cluster controller as a framework. What elects, what stores and what carries requests are plugins."""

__version__ = "0.1.0"
