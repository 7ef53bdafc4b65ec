"""The requests that a controller answers, API by API."""
