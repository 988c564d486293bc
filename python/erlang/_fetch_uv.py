"""Puts the program uv into a directory: ``python _fetch_uv.py DIRECTORY``.

Run as a program of its own, by any Python 3.8 and newer, with or without pip. The wheel comes from
the package index of ``UV_DEFAULT_INDEX``, ``UV_INDEX_URL`` or ``PIP_INDEX_URL``, else from PyPI;
proxies and certificates are those of the environment. Its digest must be the one that the index
gives.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import os
import platform
import re
import ssl
import sys
import tempfile
import urllib.parse
import urllib.request
import zipfile
from typing import Any

_INDEXES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_CERTIFICATES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")
_LINK = re.compile(r'<a\s[^>]*?href="([^"]+)"[^>]*>\s*([^<\s]+)\s*</a>')


def _first(names: tuple[str, ...], default: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), default)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """The name and the password are for one host alone, and nobody leads away from encryption."""

    def redirect_request(
        self, request: urllib.request.Request, *others: Any
    ) -> urllib.request.Request | None:
        redirected = super().redirect_request(request, *others)
        if redirected is not None and _origin(redirected.full_url) != _origin(request.full_url):
            redirected.remove_header("Authorization")
            if request.type == "https" != redirected.type:
                return None
        return redirected


def _origin(url: str) -> tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc.rpartition("@")[2]


def _get(url: str) -> tuple[bytes, str]:
    """What is there, and where it was in the end.

    A name and a password in the URL go into the header.
    """
    parts = urllib.parse.urlsplit(url)
    request = urllib.request.Request(
        urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    )
    if parts.username is not None:
        user = urllib.parse.unquote(parts.username) + ":"
        user += urllib.parse.unquote(parts.password or "")
        token = base64.b64encode(user.encode()).decode()
        request.add_header("Authorization", "Basic " + token)
    bundle = _first(_CERTIFICATES, "") or None
    context = ssl.create_default_context(cafile=bundle)
    opener = urllib.request.build_opener(_Redirects, urllib.request.HTTPSHandler(context=context))
    with opener.open(request, timeout=30) as answer:
        return bytes(answer.read()), answer.geturl()


def _libc() -> str:
    return "musllinux" if platform.libc_ver()[0] != "glibc" else "manylinux"


def _version(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", name.split("-")[1]))


def _wheel(index: str) -> tuple[str, str]:
    """The URL and the digest of the newest wheel for this machine."""
    page = index.rstrip("/") + "/uv/"
    found = []
    links, place = _get(page)
    for link, name in _LINK.findall(links.decode()):
        url, _, digest = html.unescape(link).partition("#sha256=")
        fits = _libc() in name and platform.machine() in name and name.endswith(".whl")
        if fits and re.match(r"uv-\d+(\.\d+)*-py3-none-", name) and len(digest) == 64:
            found.append((_version(name), url, digest))
    if not found:
        raise SystemExit(f"{_bare(page)} has no wheel of uv for {_libc()} on {platform.machine()}")
    _, url, digest = max(found)
    joined = urllib.parse.urljoin(place, url)
    # The name and the password are for the host of the index alone.
    if _origin(joined) == _origin(page):
        netloc = urllib.parse.urlsplit(page).netloc
        joined = urllib.parse.urlunsplit(urllib.parse.urlsplit(joined)._replace(netloc=netloc))
    return joined, digest


def _bare(url: str) -> str:
    return re.sub(r"://[^/\s]*@", "://****@", url)


def main(directory: str) -> None:
    url, digest = _wheel(_first(_INDEXES, "https://pypi.org/simple"))
    wheel, _ = _get(url)
    if hashlib.sha256(wheel).hexdigest() != digest:
        raise SystemExit(f"{_bare(url)} does not have the digest that the index gives")
    with zipfile.ZipFile(io.BytesIO(wheel)) as files:
        name = next(name for name in files.namelist() if name.endswith(".data/scripts/uv"))
        program = files.read(name)
    os.makedirs(directory, exist_ok=True)
    # In one move: another node may fetch it, too, or run it.
    place, path = tempfile.mkstemp(dir=directory)
    try:
        with os.fdopen(place, "wb") as file:
            file.write(program)
        os.chmod(path, 0o755)
        os.replace(path, os.path.join(directory, "uv"))
    except BaseException:
        os.unlink(path)
        raise


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except (OSError, ValueError, StopIteration, zipfile.BadZipFile) as error:
        raise SystemExit(_bare(f"{type(error).__name__}: {error}")) from None
