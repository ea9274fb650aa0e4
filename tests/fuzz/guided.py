"""Runs one target under libFuzzer: our modules are instrumented while they are imported, so this comes first."""

import sys

import atheris

with atheris.instrument_imports(include=["dragoman"]):
    from tests.fuzz.run import main

if __name__ == "__main__":
    sys.exit(main())
