"""Arrays that are kept although only a reduction of them is needed."""
