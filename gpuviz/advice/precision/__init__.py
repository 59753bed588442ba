"""Arrays in a wider type than the program needs."""
