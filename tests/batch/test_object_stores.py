"""Batch conversion on gs:// and az://, with the packages that users install, against small servers of these APIs."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.batch.conversations import lines, one_by_one
from tests.gateway.installing import ROOT, installed, storage_packages
from tests.support.object_stores import AzureStore, GoogleStore, Store, running
from tests.support.promises import promise

SCHEMES: dict[str, type[Store]] = {"gs": GoogleStore, "az": AzureStore}
KEY = "a2V5IG9mIGEgdGVzdA=="


@pytest.fixture(scope="module")
def python() -> Path:
    return installed("gcsfs and adlfs", storage_packages, "python")


def run(python: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    account = f"AccountName=account;AccountKey={KEY};BlobEndpoint={url}/account"
    environment = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"),
        "STORAGE_EMULATOR_HOST": url, "FSSPEC_GS_TOKEN": "anon", "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        "AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;{account};",
    }  # fmt: skip
    command = [str(python), "-m", "dragoman", "batch", "convert", *arguments, "--to", "gemini", "--workers", "1"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)  # noqa: S603


@promise("batch:sources", "batch:sinks")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_job_on_object_storage(scheme: str, python: Path) -> None:
    records, bad = lines(40), b'{"messages": 5}'
    halves = (records[:20], (*records[20:], bad))
    objects = {f"bucket/in/{index}.jsonl": b"\n".join(half) + b"\n" for index, half in enumerate(halves)}
    expected = one_by_one(records, "gemini")
    with running(SCHEMES[scheme], objects) as url:
        address = f"{scheme}://bucket"
        shards = run(python, url, f"{address}/in/*.jsonl", "-o", f"{address}/out")
        assert shards.returncode == 0, shards.stderr
        joined = b"".join(objects[key] for key in sorted(objects) if key.startswith("bucket/out/part-"))
        assert joined == expected
        assert objects["bucket/out/rejects.jsonl"].count(b"\n") == 1
        assert {"bucket/out/report.json", "bucket/out/report.html"} <= objects.keys()
        packed = run(python, url, f"{address}/in/0.jsonl", f"{address}/in/1.jsonl", "-o", f"{address}/all.jsonl")
        assert packed.returncode == 0, packed.stderr
        assert objects["bucket/all.jsonl"] == expected
        assert not [key for key in objects if ".batch" in key], "the state of a finished job is removed"
        again = run(python, url, f"{address}/in/*.jsonl", "-o", f"{address}/all.jsonl")
        assert "--overwrite" in again.stderr
        missing = run(python, url, f"{address}/nothing/*.jsonl", "-o", f"{address}/none.jsonl")
        assert "no file matches" in missing.stderr
