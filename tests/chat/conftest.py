"""Tests in a real browser are collected where there is one."""

from tests.support.browser import chromium

collect_ignore = [] if chromium() else ["test_browser.py"]
