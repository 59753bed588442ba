"""What the text of the program and the calls of its lines show."""
