"""``python -m gpuviz``: the command line."""

from gpuviz.commands.main import main

main()
