"""What hatchling runs when it builds dragoman: `DRAGOMAN_COMPILE=1` makes a compiled wheel (decision 28).

Without it a wheel is pure Python. An editable install is always source, so no compiled module can shadow an edited one.
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
        return [*REQUIREMENTS] if _is_wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or not _is_wanted():
            return
        missing = missing_tool()
        if missing is not None:
            raise RuntimeError(f"This machine has no {missing}: build without DRAGOMAN_COMPILE=1 for pure Python")
        root = Path(self.root)
        built = compile_core(root / "src", root / "build" / "core")
        build_data["force_include"].update({str(path): place for path, place in built.items()})
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def _is_wanted() -> bool:
    return os.environ.get("DRAGOMAN_COMPILE") == "1"
