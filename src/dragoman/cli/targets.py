"""Resolves a model name to its provider, by defaults, routes and providers of the configuration."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from msgspec import Struct

from dragoman.cli.problems import CommandError
from dragoman.drivers.connect import Environment, Options, is_local
from dragoman.drivers.key_store import environment_with_stored_keys, explain_missing_key
from dragoman.drivers.providers import PROVIDERS, Provider, find_provider, missing_provider, providers_of_name
from dragoman.errors import NotConfigured
from dragoman.gateway.config import Config, ConfigError, ProviderTable, load_config
from dragoman.gateway.config_file import ConfigFile, find_config_file

_SET_A_DEFAULT = 'set DRAGOMAN_MODEL, or model = "provider/model" under [defaults] in dragoman.toml'


class Target(Struct, frozen=True):
    """A model, and how to connect to it."""

    provider: Provider
    model: str
    options: Options

    @property
    def name(self) -> str:
        return f"{self.provider.name}/{self.model}"


class Settings(Struct, frozen=True):
    """The configuration and environment of a command."""

    file: ConfigFile
    config: Config
    environment: Environment
    """Environment of the process, with stored keys added."""

    def model(self, given: str | None) -> str:
        """The given model, or the default one. Raises `CommandError` if there is neither."""
        found = given or self.environment.get("DRAGOMAN_MODEL") or self.config.defaults.model
        if not found:
            raise CommandError(f"no model given: name one as provider/model{self._example()}, or {_SET_A_DEFAULT}")
        return found

    def _example(self) -> str:
        """A model for which there is a key."""
        for provider in PROVIDERS.values():
            variable = next((name for name in provider.key_environment if self.environment.get(name)), None)
            if variable is not None and provider.example:
                return f", such as {provider.name}/{provider.example} (there is a key for it)"
        return ""

    def is_model(self, word: str) -> bool:
        """Whether the first word of a command line names a model: `provider/model`, or a route."""
        return word in self.config.routes or ("/" in word and len(word.split()) == 1)

    def target(self, name: str) -> Target:
        """The model that a name stands for. Raises `NotConfigured` and `ConfigError`."""
        model = self._follow_routes(name)
        provider, slash, rest = model.partition("/")
        if not slash or not rest:
            raise missing_provider(model)
        table = self.config.providers.get(provider)
        if table is None:
            return Target(find_provider(provider), rest, {"environment": self.environment})
        return self._target_from_table(provider, table, rest)

    def _follow_routes(self, name: str) -> str:
        """The first target of a route. Loops were refused when the configuration was read."""
        while name in self.config.routes:
            to = self.config.routes[name].to
            first = to if isinstance(to, str) else to[0]
            name = first if isinstance(first, str) else first.model
        return name

    def _target_from_table(self, name: str, table: ProviderTable, model: str) -> Target:
        from dragoman.gateway.routing import configured_place

        place = configured_place(name, table, self.environment)
        options: Options = {**place.options}
        if place.keys:
            options["api_key"] = place.keys[0]
        elif not self.file.is_trusted and table.base_url and not is_local(table.base_url):
            raise NotConfigured(
                f"{self.file.path} of this folder sends {name} to {table.base_url}: your key goes there only if you "
                f"name the file (--config {self.file.path}), or the file has an api_key of its own",
                missing="api_key",
            )
        return Target(place.provider, model, options)


def settings_of(arguments: argparse.Namespace) -> Settings:
    """The settings of a command. Raises `CommandError` for an invalid configuration."""
    file = find_config_file(getattr(arguments, "config", None))
    try:
        return Settings(file, load_config(file.path), environment_with_stored_keys())
    except ConfigError as error:
        raise CommandError(str(error)) from None


def find_target(settings: Settings, model: str) -> Target:
    try:
        return settings.target(model)
    except (NotConfigured, ConfigError) as error:
        raise CommandError(str(error)) from None


def model_and_words(settings: Settings, model: str | None, words: Sequence[str]) -> tuple[str, list[str]]:
    """`dragoman ask [MODEL] WORDS`: the first word is a model if it looks like one, unless --model was given."""
    if model is None and words and settings.is_model(words[0]):
        return words[0], list(words[1:])
    try:
        return settings.model(model), list(words)
    except CommandError:
        if words and providers_of_name(words[0]):  # `dragoman ask gpt-5.6 "Hello"`
            raise CommandError(str(missing_provider(words[0]))) from None
        raise


_ARGUMENT = re.compile(r", or pass (region|project|location|base_url|api_version)=\.\.\.$")


def explain(error: NotConfigured, provider: str) -> str:
    """The error with the command that fixes it, instead of the Python argument."""
    words = explain_missing_key(error, provider)
    return _ARGUMENT.sub(lambda found: f", or give --{found[1].replace('_', '-')}", words)
