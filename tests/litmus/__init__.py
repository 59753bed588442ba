"""Litmus programs of cross-stream hazards: reader, judges, comparison.

``python -m tests.litmus FILE...`` judges programs; ``python -m tests.litmus.fuzz`` compares the
engine with an oracle on random ones.
"""
