"""Convert a stored request to another format and list what did not cross.

python examples/convert.py examples/request.json gemini
"""

import json
import sys
from pathlib import Path

import dragoman


def main(file: str = "examples/request.json", target: str = "gemini") -> None:
    body = Path(file).read_bytes()
    found = dragoman.detect(body)
    if found is None:
        sys.exit(f"{file} is in no format that dragoman knows")
    encoded = dragoman.translate_request(body, source=found.format, target=target)
    print(encoded.path)
    print(json.dumps(encoded.body, indent=2))
    for loss in encoded.losses:
        print(loss, file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
