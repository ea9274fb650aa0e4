"""Compiles the core of dragoman for a wheel (decision 28). Used by hatch_build.py only; no part of the package."""
