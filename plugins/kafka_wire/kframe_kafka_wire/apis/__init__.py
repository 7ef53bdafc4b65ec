"""The handlers of requests to the controller, one module for each group of APIs, and what they share of a call.

``table`` has every offered API with its versions, handler, error format and required operation.
"""
