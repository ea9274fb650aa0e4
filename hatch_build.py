"""Wheels are compiled, editable installs are source: what hatchling runs when it builds dragoman (decision 27).

`DRAGOMAN_COMPILE=0` builds a wheel of pure Python, `DRAGOMAN_COMPILE=1` fails where a wheel cannot be compiled. Without
either, a machine that has no C compiler gets pure Python and a line that says so.
"""

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

from compiling.core import REQUIREMENTS, compile_core, missing_tool


class CompiledCore(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the compiled modules to a wheel, beside their sources."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if _wanted() == "0" or missing_tool() is not None else [*REQUIREMENTS, "msgspec>=0.19"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or _wanted() == "0":
            return
        missing = missing_tool()
        if missing is not None:
            if _wanted() == "1":
                raise RuntimeError(f"DRAGOMAN_COMPILE=1, but this machine has no {missing}")
            self.app.display_warning(f"dragoman is installed as pure Python: this machine has no {missing}")
            return
        root = Path(self.root)
        built = compile_core(root / "src", root / "build" / "core")
        build_data["force_include"].update({str(path): place for path, place in built.items()})
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def _wanted() -> str:
    return os.environ.get("DRAGOMAN_COMPILE", "")
