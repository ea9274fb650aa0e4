"""Writes tests/mirrored_names.json: public names that not every codec folder has. See tests/test_mirrored_codecs.py."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a script has only its own folder on the path

from tests.support.mirrored import differences


def main() -> int:
    found = differences()
    table = Path(__file__).resolve().parent.parent / "tests" / "mirrored_names.json"
    table.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{sum(map(len, found.values()))} public names that not every codec folder has")
    return 0


if __name__ == "__main__":
    sys.exit(main())
