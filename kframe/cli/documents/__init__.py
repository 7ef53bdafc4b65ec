"""The types of kframe's JSON documents, and their JSON Schemas (``kframe schema``)."""
