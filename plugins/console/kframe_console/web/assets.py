"""The scripts and styles of pages. Browsers cache them: their path has a digest of all, so it changes with them."""

from __future__ import annotations

import hashlib
from os import PathLike, stat_result
from pathlib import Path
from typing import Final

from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC: Final = Path(__file__).parents[1] / "static"
#: A year, the longest time that browsers honour. Proxies do not cache them, since a login may protect them.
_CACHE_CONTROL: Final = "private, max-age=31536000, immutable"
_DIGEST_DIGITS: Final = 16


def _digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in STATIC.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(STATIC)} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:_DIGEST_DIGITS]


#: Their path in the application.
ASSETS: Final = f"/static/{_digest()}"


class _Assets(StaticFiles):
    def file_response(
        self, full_path: PathLike[str] | str, stat_result: stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """A file that browsers cache."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["cache-control"] = _CACHE_CONTROL
        return response


def assets_route() -> Mount:
    """The route of ASSETS."""
    return Mount(ASSETS, _Assets(directory=STATIC), name="static")
