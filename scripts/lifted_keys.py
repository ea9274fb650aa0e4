"""Print the share of recorded bodies that are lifted, and the keys that cause it, per file of recordings.

A body is lifted when one of its objects has a key that the wire structs do not model; it then costs several times as
much. `python scripts/lifted_keys.py --from openai-chat --kind request --bodies 500`
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a script has only its own folder on the path

from benchmarks import corpus
from tests.support.lifting import lifted_keys


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    files = {**corpus.VENDOR_FILES, **corpus.COMPATIBLE_FILES}
    parser.add_argument("--from", dest="source", choices=sorted(set(files.values())), help="bodies of this format only")
    parser.add_argument("--kind", choices=("request", "response"), help="default: both")
    parser.add_argument("--bodies", type=int, default=300, help="bodies of each file (default: %(default)s; 0: all)")
    parser.add_argument("--keys", type=int, default=15, help="keys to show for each file (default: %(default)s)")
    options = parser.parse_args()
    if not corpus.is_present():
        print("no recordings beside this repository", file=sys.stderr)
        return 2
    for kind in corpus.KINDS[:2]:
        for file, source in files.items():
            if options.kind in {None, kind} and options.source in {None, source}:
                show(file, corpus.recorded(file, source, kind, options.bodies or None), kind, options.keys)
    return 0


def show(file: str, samples: list[corpus.Sample], kind: corpus.Kind, keys: int) -> None:
    """One line for the file, then the keys, with the number of bodies that each is in."""
    found = [lifted for sample in samples if (lifted := lifted_keys(sample, kind)) is not None]
    bodies: Counter[str] = Counter(name for lifted in found for name in lifted)
    count = sum(1 for lifted in found if lifted)
    share = count / len(found) if found else 0.0
    print(f"{file} {kind}s: {count} of {len(found)} lifted ({share:.1%})")
    for name, number in bodies.most_common(keys):
        print(f"  {number:5}  {name}")


if __name__ == "__main__":
    sys.exit(main())
