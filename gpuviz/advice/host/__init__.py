"""What the host does while the GPU has nothing to do."""
