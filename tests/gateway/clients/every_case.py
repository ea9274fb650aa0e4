"""What every loop in this folder does with its argument: try each case, print the answers as JSON.

A case may bring environment variables of its own, such as another base URL.
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
        except Exception as error:  # noqa: BLE001 - the test reads what went wrong, and in which case
            answers.append(f"{type(error).__name__}: {error}"[:600])
    print(json.dumps(answers))
