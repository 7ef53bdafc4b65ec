"""What the controller must answer, by a plain model of the metadata.

Each function returns what is wrong with a response, or with a refusal.
"""
