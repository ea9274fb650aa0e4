"""The command line: a thin module per command, which adds its options; the work is in `…_command` modules."""

from dragoman.cli.main import main

__all__ = ["main"]
