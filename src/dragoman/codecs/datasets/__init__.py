"""Formats of stored conversations: training sets, logs of agents, dumps of frameworks, results of benchmarks.

Each is a `Dataset`: how to recognise, read and (where such files are also created) write its records. Bodies in a
vendor's own format are read and written by that vendor's codec.
"""
