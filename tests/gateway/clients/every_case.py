"""Shared by all loops in this folder: tries each case of the argument, and prints the answers as JSON.

A case may have its own environment variables, such as another base URL.
"""

import json
import os
import sys


def try_each_case(answer):
    given = json.loads(sys.argv[1])
    answers = []
    for case in given["cases"]:
        os.environ.update(case.get("environment", {}))
        try:
            answers.append(answer(case, given["questions"], given["weather"]))
        except Exception as error:  # noqa: BLE001 - the test reads the error of each case
            answers.append(f"{type(error).__name__}: {error}"[:600])
    print(json.dumps(answers))
