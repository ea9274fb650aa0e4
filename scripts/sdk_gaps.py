"""Removes rows from tests/judges/sdk_gaps.json that the wire structs model by now, and prints fields not listed yet.

New rows are written by hand, with a reason: see tests/judges/test_sdk_fields.py.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a script has only its own folder on the path

from tests.judges.sdk_fields import ROOTS, root_gaps

TABLE = Path(__file__).resolve().parent.parent / "tests" / "judges" / "sdk_gaps.json"


def main() -> int:
    table: dict[str, dict[str, list[str]]] = json.loads(TABLE.read_text())
    kept: dict[str, dict[str, list[str]]] = {}
    unlisted = 0
    for root in ROOTS:
        found, groups = root_gaps(root), table.get(root, {})
        left = {reason: [path for path in found if path in paths] for reason, paths in groups.items()}
        kept[root] = {reason: paths for reason, paths in left.items() if paths}
        listed = {path for paths in groups.values() for path in paths}
        print(f"{root}: {len(found)} fields not modelled, {len(listed - set(found))} rows removed")
        for path in found:
            if path not in listed:
                unlisted += 1
                print(f"  not listed: {path}")
    TABLE.write_text(json.dumps({root: groups for root, groups in kept.items() if groups}, indent=1) + "\n")
    return 1 if unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
