"""Formats in which conversations are stored: training sets, logs of agents, dumps of frameworks, results of benchmarks.

Each is a `Dataset`: how its records are known, read and (where people write them) written. Bodies inside that are a
vendor's own are read and written by that vendor's codec.
"""
