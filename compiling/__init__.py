"""Compiles the core of dragoman for a wheel (decision 28). Used only by hatch_build.py; not part of the package."""
