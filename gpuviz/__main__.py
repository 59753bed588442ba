"""``python -m gpuviz``: the command line."""

from gpuviz.cli import main

main()
