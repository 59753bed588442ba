"""What gpuviz says as terminal text and as static HTML: it renders, and decides nothing."""
