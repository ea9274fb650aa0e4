"""The heat map of fidelity as a picture."""

import tempfile
from pathlib import Path

from dragoman.cli import main

with tempfile.TemporaryDirectory() as folder:
    picture = Path(folder, "fidelity.png")
    main(["fidelity", "--feature", "call-ids", "--png", str(picture)])
    assert picture.read_bytes()[:4] == b"\x89PNG"
