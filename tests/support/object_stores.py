"""Small object stores on real sockets: as much of the APIs of Google's and Azure's storage as their clients use."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

DATE = "Wed, 18 Nov 2026 08:00:00 GMT"


class Store(BaseHTTPRequestHandler):
    """Objects of one server, by `bucket/name`."""

    objects: ClassVar[dict[str, bytes]]
    blocks: ClassVar[dict[str, bytes]]
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def _read(self) -> tuple[str, dict[str, str], bytes]:
        """Path, query and body of the request."""
        address = urlsplit(self.path)
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        return unquote(address.path), query, body

    def _send(self, status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", kind)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            with suppress(ConnectionError):  # clients cancel requests whose answer they do not need any more
                self.wfile.write(body)

    def _send_range(self, content: bytes, asked: str | None, **headers: str) -> None:
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", asked or "")
        if found is None:
            self._send(200, content, "application/octet-stream", **headers)
            return
        start, end = int(found[1]), min(int(found[2] or len(content)) + 1, len(content))
        if start >= len(content):
            self._send(416)
            return
        place = f"bytes {start}-{end - 1}/{len(content)}"
        self._send(206, content[start:end], "application/octet-stream", Content_Range=place, **headers)

    def _listed(self, bucket: str, prefix: str, delimiter: str) -> tuple[list[str], list[str]]:
        """Names of objects, and prefixes up to the delimiter."""
        names, prefixes = list[str](), set[str]()
        for key in sorted(self.objects):
            name = key.removeprefix(f"{bucket}/")
            if not key.startswith(f"{bucket}/{prefix}"):
                continue
            rest = name[len(prefix) :]
            if delimiter and delimiter in rest:
                prefixes.add(prefix + rest[: rest.index(delimiter) + 1])
            else:
                names.append(name)
        return names, sorted(prefixes)


class GoogleStore(Store):
    """The JSON API of Google Cloud Storage."""

    def _described(self, bucket: str, name: str) -> dict[str, Any]:
        content = self.objects[f"{bucket}/{name}"]
        digest = base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()
        return {
            "kind": "storage#object", "bucket": bucket, "name": name, "size": str(len(content)), "md5Hash": digest,
            "generation": "1", "metageneration": "1", "updated": "2026-11-18T08:00:00.000Z",
            "timeCreated": "2026-11-18T08:00:00.000Z", "etag": digest, "storageClass": "STANDARD",
        }  # fmt: skip

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(status, json.dumps(value).encode())

    def do_GET(self) -> None:
        path, query, _ = self._read()
        found = re.fullmatch(r"(?:/download)?/storage/v1/b/([^/]+)(?:/o(?:/(.+))?)?", path)
        assert found, self.path
        bucket, name = found[1], found[2]
        if name is None and not path.endswith("/o"):
            self._json({"kind": "storage#bucket", "name": bucket, "location": "EU", "storageClass": "STANDARD"})
        elif name is None:
            names, prefixes = self._listed(bucket, query.get("prefix", ""), query.get("delimiter", ""))
            items = [self._described(bucket, one) for one in names]
            self._json({"kind": "storage#objects", "items": items, "prefixes": prefixes})
        elif f"{bucket}/{name}" not in self.objects:
            self._json({"error": {"code": 404, "message": "Not Found"}}, 404)
        elif query.get("alt") == "media" or path.startswith("/download"):
            self._send_range(self.objects[f"{bucket}/{name}"], self.headers.get("Range"))
        else:
            self._json(self._described(bucket, name))

    def do_POST(self) -> None:
        path, query, body = self._read()
        if path.startswith("/resume/"):
            self._resume(path, body)
            return
        if path.startswith("/batch/"):
            self._delete_many(body)
            return
        found = re.fullmatch(r"/upload/storage/v1/b/([^/]+)/o", path)
        assert found, self.path
        if query["uploadType"] == "resumable":
            name = query.get("name") or json.loads(body)["name"]
            key = f"{found[1]}/{name}"
            self.blocks[key] = b""
            host = self.headers["Host"]
            self._send(200, b"{}", Location=f"http://{host}/resume/{key}")
            return
        boundary = re.search(r'boundary="?([^";]+)', self.headers["Content-Type"])
        assert boundary
        _, described, content, _ = body.split(b"--" + boundary[1].encode())
        name = json.loads(described.split(b"\r\n\r\n" if b"\r\n\r\n" in described else b"\n\n", 1)[1])["name"]
        raw = content.split(b"\r\n\r\n" if b"\r\n\r\n" in content else b"\n\n", 1)[1]
        self.objects[f"{found[1]}/{name}"] = raw.removesuffix(b"\r\n" if raw.endswith(b"\r\n") else b"\n")
        self._json(self._described(found[1], name))

    def do_PUT(self) -> None:
        path, _, body = self._read()
        self._resume(path, body)

    def _resume(self, path: str, body: bytes) -> None:
        key = path.removeprefix("/resume/")
        self.blocks[key] += body
        if self.headers.get("Content-Range", "").endswith("*"):
            self._send(308, Range=f"bytes=0-{len(self.blocks[key]) - 1}")
            return
        self.objects[key] = self.blocks.pop(key)
        bucket, _, name = key.partition("/")
        self._json(self._described(bucket, name))

    def do_DELETE(self) -> None:
        path, _, _ = self._read()
        found = re.fullmatch(r"/storage/v1/b/([^/]+)/o/(.+)", path)
        assert found, self.path
        there = self.objects.pop(f"{found[1]}/{found[2]}", None)
        self._send(204 if there is not None else 404)

    def _delete_many(self, body: bytes) -> None:
        parts = []
        for number, place in enumerate(re.findall(rb"DELETE \S*?/b/([^/]+)/o/(\S+) HTTP", body), 1):
            self.objects.pop(f"{place[0].decode()}/{unquote(place[1].decode())}", None)
            parts.append(
                f"--batch_x\r\nContent-Type: application/http\r\nContent-ID: <response-{number}>\r\n\r\n"
                "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n\r\n"
            )
        self._send(200, ("".join(parts) + "--batch_x--").encode(), "multipart/mixed; boundary=batch_x")


class AzureStore(Store):
    """The API of Azure's Blob Storage; addresses begin with the name of the account."""

    def _place(self, path: str) -> tuple[str, str]:
        _, _, container, *rest = path.split("/", 3)
        return container, rest[0] if rest else ""

    def _headers(self, content: bytes) -> dict[str, str]:
        return {
            "ETag": f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"', "Last_Modified": DATE,
            "x_ms_blob_type": "BlockBlob", "x_ms_creation_time": DATE, "Accept_Ranges": "bytes",
        }  # fmt: skip

    def _missing(self) -> None:
        self._send(404, b"", "application/xml", x_ms_error_code="BlobNotFound")

    def do_HEAD(self) -> None:
        path, query, _ = self._read()
        container, name = self._place(path)
        if query.get("restype") == "container" or not name:
            self._send(200, Last_Modified=DATE, ETag='"1"')
        elif (content := self.objects.get(f"{container}/{name}")) is None:
            self._missing()
        else:
            length = str(len(content))
            self._send(200, b"", "application/octet-stream", Content_Length=length, **self._headers(content))

    def do_GET(self) -> None:
        path, query, _ = self._read()
        container, name = self._place(path)
        if query.get("comp") == "list":
            self._send(200, self._list(container, query), "application/xml")
        elif query.get("restype") == "container":
            self._send(200, Last_Modified=DATE, ETag='"1"')
        elif (content := self.objects.get(f"{container}/{name}")) is None:
            self._missing()
        else:
            asked = self.headers.get("x-ms-range") or self.headers.get("Range")
            self._send_range(content, asked, **self._headers(content))

    def _list(self, container: str, query: dict[str, str]) -> bytes:
        names, prefixes = self._listed(container, query.get("prefix", ""), query.get("delimiter", ""))
        blobs = [
            f"<Blob><Name>{escape(name)}</Name><Properties><Creation-Time>{DATE}</Creation-Time>"
            f"<Last-Modified>{DATE}</Last-Modified><Etag>1</Etag>"
            f"<Content-Length>{len(self.objects[f'{container}/{name}'])}</Content-Length>"
            "<Content-Type>application/octet-stream</Content-Type><BlobType>BlockBlob</BlobType></Properties></Blob>"
            for name in names
        ]
        blobs += [f"<BlobPrefix><Name>{escape(prefix)}</Name></BlobPrefix>" for prefix in prefixes]
        return (
            f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="{container}">'
            f"<Blobs>{''.join(blobs)}</Blobs><NextMarker /></EnumerationResults>"
        ).encode()

    def do_PUT(self) -> None:
        path, query, body = self._read()
        container, name = self._place(path)
        key = f"{container}/{name}"
        if query.get("comp") == "block":
            self.blocks[f"{key} {query['blockid']}"] = body
        elif query.get("comp") == "blocklist":
            ids = re.findall(r"<(?:Latest|Uncommitted|Committed)>([^<]+)<", body.decode())
            self.objects[key] = b"".join(self.blocks[f"{key} {one}"] for one in ids)
        elif name:
            self.objects[key] = body
        self._send(201, ETag='"1"', Last_Modified=DATE, x_ms_request_server_encrypted="true")

    def do_DELETE(self) -> None:
        path, _, _ = self._read()
        there = self.objects.pop("/".join(self._place(path)), None)
        self._send(202) if there is not None else self._missing()

    def do_POST(self) -> None:
        _, _, body = self._read()
        parts = []
        for number, path in enumerate(re.findall(rb"DELETE (\S+) HTTP", body)):
            self.objects.pop("/".join(self._place(unquote(urlsplit(path.decode()).path))), None)
            parts.append(
                f"--batch_x\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
                "HTTP/1.1 202 Accepted\r\nx-ms-version: 2021-08-06\r\n\r\n"
            )
        self._send(202, ("\r\n".join(parts) + "\r\n--batch_x--\r\n").encode(), "multipart/mixed; boundary=batch_x")


@contextmanager
def running(kind: type[Store], objects: dict[str, bytes]) -> Iterator[str]:
    """The address of a server with these objects."""
    handler = type(kind.__name__, (kind,), {"objects": objects, "blocks": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
