"""Differences between two recordings."""
