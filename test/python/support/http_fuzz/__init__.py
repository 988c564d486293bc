"""Requests made by a grammar, and what our server, h11 and llhttp understand of the same bytes."""
