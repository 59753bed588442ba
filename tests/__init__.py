"""Tests mirror the packages and the native nouns that they test."""
