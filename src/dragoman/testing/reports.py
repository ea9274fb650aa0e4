"""Reports of checks."""

from __future__ import annotations

from msgspec import Struct


class Finding(Struct, frozen=True):
    """A law that does not hold: which one, on what, and what happened."""

    law: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.law}: {self.subject}: {self.detail}"


class CodecFailed(AssertionError):
    """A codec breaks the laws. `report` has all findings."""

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(str(report))


class Report(Struct, frozen=True):
    """All findings on one codec, and the number of trials per law; a law without trials counts as not checked."""

    codec: str
    findings: tuple[Finding, ...]
    tried: dict[str, int]

    @property
    def ok(self) -> bool:
        return not self.findings

    def raise_if_failed(self) -> None:
        if self.findings:
            raise CodecFailed(self)

    def __str__(self) -> str:
        tried = ", ".join(f"{law} {count}x" for law, count in self.tried.items())
        findings = "\n".join(f"  {finding}" for finding in self.findings) or "  nothing found"
        return f"{self.codec}: {len(self.findings)} findings ({tried})\n{findings}"
