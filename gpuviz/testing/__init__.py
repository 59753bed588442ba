"""The pytest plugin: tests that fail on GPU memory, leaks, synchronizations and hazards."""
