"""`dragoman fidelity`, as its users call it."""

import json
from importlib.util import find_spec
from pathlib import Path

from dragoman.installation import install_command
from tests.cli.command import run


def test_a_pair_is_shown_with_reasons() -> None:
    ran = run("fidelity", "--from", "gemini", "--to", "anthropic-messages", "--feature", "seed")
    assert ran.returncode == 0
    heading, *rows = ran.stdout.decode().splitlines()
    assert heading.split() == ["kind", "feature", "from", "to", "verdict", "because"]
    assert [row.split()[:5] for row in rows] == [["request", "seed", "gemini", "anthropic-messages", "degraded"]]
    assert len(rows[0].split()) > 5


def test_one_source_is_shown_as_counts() -> None:
    lines = run("fidelity", "--from", "ollama-chat").stdout.decode().splitlines()
    assert lines[0].split() == ["from", "to", "exact", "carried", "degraded", "refused", "silent"]
    assert {line.split()[0] for line in lines[1:]} == {"ollama-chat"}
    assert {line.split()[-1] for line in lines[1:]} == {"0"}


def test_json_and_pictures(tmp_path: Path) -> None:
    picture = tmp_path / "matrix.svg"
    ran = run("fidelity", "--feature", "seed", "--json", "--svg", str(picture))
    assert json.loads(ran.stdout)["rows"]["request"]["seed"]["gemini"]["ollama-chat"] == "exact"
    assert picture.read_text().startswith("<svg ")
    assert b"### From gemini" in run("fidelity", "--feature", "seed", "--markdown").stdout


def test_an_unknown_feature() -> None:
    ran = run("fidelity", "--feature", "telepathy")
    assert ran.returncode == 2
    assert b"unknown feature 'telepathy'" in ran.stderr


def test_a_png_is_drawn_or_the_missing_package_is_named(tmp_path: Path) -> None:
    picture = tmp_path / "matrix.png"
    ran = run("fidelity", "--feature", "seed", "--png", str(picture))
    if find_spec("PIL") is None:
        assert (ran.returncode, picture.exists()) == (2, False)
        assert install_command("docs").encode() in ran.stderr
    else:
        assert picture.read_bytes().startswith(b"\x89PNG")
