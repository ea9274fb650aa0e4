"""Stored provider keys: in the system's keyring, or in a file that only its owner can read.

Only the commands read them: a program that imports dragoman uses the keys it is given.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import msgspec

from dragoman.drivers.providers import ALIASES, PROVIDERS, Provider, find_provider
from dragoman.errors import DragomanError, NotConfigured
from dragoman.private_files import create_private_file, create_private_folder

_SERVICE = "dragoman"
_OTHERS_MAY_READ = stat.S_IRWXG | stat.S_IRWXO


class KeyStoreError(DragomanError):
    """The store cannot be read or written."""


class Keyring(Protocol):
    """The part of the package `keyring` that we use."""

    def set_password(self, service: str, name: str, value: str, /) -> None: ...

    def get_password(self, service: str, name: str, /) -> str | None: ...

    def delete_password(self, service: str, name: str, /) -> None: ...


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The user's settings: `dragoman` in the XDG configuration directory."""
    base = environment.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "dragoman"


class KeyStore:
    """Provider -> key. The file lists all providers; the value is null if the key is in the keyring."""

    def __init__(self, folder: Path | None = None, keyring: Keyring | None = None) -> None:
        self.file = (config_folder() if folder is None else folder) / "keys.json"
        self._keyring = keyring

    @classmethod
    def open(cls, environment: Mapping[str, str] = os.environ) -> KeyStore:
        """The user's store, with the system's keyring if there is one."""
        return cls(config_folder(environment), _system_keyring(environment))

    def set(self, provider: str, key: str) -> str:
        """Stores the key; returns a description of where it is."""
        name = _provider_with_key(provider).name
        known = self._read()
        if self._keyring is None:
            self._write({**known, name: key})
            return str(self.file)
        try:
            self._keyring.set_password(_SERVICE, name, key)
        except Exception as error:  # noqa: BLE001 - any backend may fail in its own way
            raise KeyStoreError(f"the keyring refused the key: {type(error).__name__}") from None
        self._write({**known, name: None})
        return "the keyring of this system"

    def remove(self, provider: str) -> bool:
        """Returns False if there was no key."""
        name = _provider_with_key(provider).name
        known = self._read()
        if name not in known:
            return False
        if known.pop(name) is None and self._keyring is not None:
            try:
                self._keyring.delete_password(_SERVICE, name)
            except Exception as error:  # noqa: BLE001 - as above
                raise KeyStoreError(f"the keyring did not delete the key: {type(error).__name__}") from None
        self._write(known)
        return True

    def places(self) -> dict[str, str]:
        """Provider -> description of where its key is."""
        return {name: "keyring" if key is None else str(self.file) for name, key in self._read().items()}

    def keys(self) -> dict[str, str]:
        """Provider -> key. Keys of a missing keyring are skipped; a keyring that refuses raises `KeyStoreError`."""
        found: dict[str, str] = {}
        for name, key in self._read().items():
            value = self._read_keyring(name) if key is None else key
            if value:
                found[name] = value
        return found

    def _read_keyring(self, name: str) -> str | None:
        try:
            return None if self._keyring is None else self._keyring.get_password(_SERVICE, name)
        except Exception as error:  # noqa: BLE001 - as above
            raise KeyStoreError(f"the keyring did not return the key of {name}: {type(error).__name__}") from None

    def _read(self) -> dict[str, str | None]:
        try:
            if os.name == "posix" and self.file.stat().st_mode & _OTHERS_MAY_READ:
                raise KeyStoreError(f"others may read {self.file}: chmod 600 {self.file}")
            return msgspec.json.decode(self.file.read_bytes(), type=dict[str, str | None])
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise KeyStoreError(f"cannot read {self.file}: {error.strerror}") from None
        except msgspec.DecodeError:
            raise KeyStoreError(f"{self.file} is damaged: delete it and set the keys again") from None

    def _write(self, known: Mapping[str, str | None]) -> None:
        new = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        try:
            create_private_folder(self.file.parent)
            create_private_file(new)
            new.write_bytes(msgspec.json.encode(dict(sorted(known.items()))))
            new.replace(self.file)
        except OSError as error:
            raise KeyStoreError(f"cannot write {self.file}: {error.strerror}") from None


def environment_with_stored_keys(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment, with stored keys as variables of their providers. Variables that are set take precedence.

    A copy, so that child processes do not inherit the keys.
    """
    merged = dict(environment)
    for name, key in KeyStore.open(environment).keys().items():
        variables = PROVIDERS[name].key_environment if name in PROVIDERS else ()
        if variables and not any(environment.get(one) for one in variables):
            merged[variables[0]] = key
    return merged


def _provider_with_key(name: str) -> Provider:
    provider = find_provider(name)
    if not provider.key_environment:
        raise NotConfigured(f"{provider.name} takes no key of its own", missing="api_key")
    return provider


def _system_keyring(environment: Mapping[str, str]) -> Keyring | None:
    """The system's keyring; None if the package `keyring` is not installed, or finds no working one."""
    if environment.get("DRAGOMAN_KEYRING") == "off":
        return None
    try:
        found: Any = import_module("keyring")
        backend = found.get_keyring()
    except Exception:  # noqa: BLE001 - same as no keyring
        return None
    return found if getattr(backend, "priority", 0) > 0 else None


def explain_missing_key(error: NotConfigured, provider: str) -> str:
    """The error; if a key is missing, with the command that stores one, because the user may not write Python."""
    row = PROVIDERS.get(ALIASES.get(provider, provider))
    if error.missing != "api_key" or row is None or "--config" in str(error):
        return str(error)
    variable = row.key_environment[0] if row.key_environment else ""
    ways = f"`dragoman keys set {row.name}`" + (f", or set {variable}" if variable else "")
    return f"no key for {row.name}: run {ways}"
