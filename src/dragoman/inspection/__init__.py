"""Describes bodies and recorded streams, for the command line and the page."""
