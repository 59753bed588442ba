"""Launches that one kernel could do together."""
