"""The command line: one thin module per command."""

from dragoman.cli.main import main

__all__ = ["main"]
