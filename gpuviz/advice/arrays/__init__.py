"""The blocks of a device as arrays of the program: who makes and uses them, and what they hold."""
