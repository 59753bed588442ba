"""Gradients, losses and modes of a training that cost more than they give."""
