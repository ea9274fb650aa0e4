"""Writes tests/golden: what every sample becomes in every format. A change of behaviour shows as a difference.

    python scripts/golden.py                             # write the pages again, and name those that changed
    python scripts/golden.py --against main              # what differs from a revision, in full
    python scripts/golden.py --against main fields/gemini

Look at what `git diff tests/golden` shows before committing it. Pages of samples have bodies and losses in full. Of
constructed values there are digests and losses; `--against` makes both versions of their pages and compares them.
"""

import argparse
import difflib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_OTHER_PAGES = """
import json, sys
from tests.support.golden import page
print(json.dumps([page(name, whole=True) for name in sys.argv[1:]]))
"""


def write(names: list[str]) -> None:
    from tests.support.golden import PAGES, page, review, reviewed  # noqa: PLC0415 - after `main` has set the path

    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(name.partition("/")[0], []).append(name)
    for kind, wanted in kinds.items():
        known = reviewed(kind)
        found = {name.partition("/")[2]: page(name) for name in wanted}
        for name, text in found.items():
            if known.get(name) != text:
                print(f"changed: {kind}/{name}")
        every = {**known, **found}
        review(
            kind,
            {of: every[of] for name in PAGES if name.startswith(f"{kind}/") if (of := name.partition("/")[2]) in every},
        )


def compare(names: list[str], revision: str) -> None:
    """Prints how the pages of both revisions differ, made from the cases of this one, which the other need not have."""
    from tests.support.golden import page  # noqa: PLC0415 - after `main` has set the path

    with tempfile.TemporaryDirectory() as folder:
        git = ["git", "archive", "--format=zip", f"--output={folder}/src.zip", revision, "src"]
        subprocess.run(git, cwd=ROOT, check=True)  # noqa: S603 - our own arguments
        shutil.unpack_archive(f"{folder}/src.zip", folder)
        environment = {**os.environ, "PYTHONPATH": f"{folder}/src:{ROOT}"}
        found = subprocess.run(  # noqa: S603 - our own arguments
            [sys.executable, "-c", _OTHER_PAGES, *names], cwd=ROOT, env=environment, check=True, capture_output=True
        )
    for name, before in zip(names, json.loads(found.stdout), strict=True):
        lines = difflib.unified_diff(
            before.splitlines(), page(name, whole=True).splitlines(), name, name, n=2, lineterm=""
        )
        print("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of pages: fields/gemini (default: all)")
    parser.add_argument("--against", metavar="REVISION", help="print what differs from this revision, write nothing")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    from tests.support.golden import PAGES  # noqa: PLC0415

    names = options.names or list(PAGES)
    if options.against:
        compare(names, options.against)
    else:
        write(names)


if __name__ == "__main__":
    main()
