"""Tests, organized by the packages and native rooms that they test."""
