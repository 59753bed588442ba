"""Gradients, losses and modes that a training does not need."""
