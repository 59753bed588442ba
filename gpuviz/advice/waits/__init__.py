"""Where the host, or a stream, waits for other work."""
