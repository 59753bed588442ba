"""Findings of a recording: what is wrong, what it costs, what to change."""
