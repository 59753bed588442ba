"""``python -m gpuviz``: the command line."""

from gpuviz.commands.cli import main

main()
