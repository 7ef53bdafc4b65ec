"""The handlers of requests to the controller, one module for each group of APIs."""
