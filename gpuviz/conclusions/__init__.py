"""What gpuviz says about a recording: one ranked list, and the tables that files keep of it."""
