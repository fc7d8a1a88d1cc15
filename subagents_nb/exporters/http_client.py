"""HTTP for exporters: certificates are checked, redirects are not followed, and an error names no credentials."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx

from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import ExportError

TIMEOUT_S = 30.0


class Server:
    """One server. `base` may carry a user and password; they are sent as such and shown nowhere."""

    def __init__(
        self,
        base: str,
        *,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        certificates: str | None = None,
        patience_s: float = TIMEOUT_S,
    ) -> None:
        split = urlsplit(base)
        own = (split.username or "", split.password or "") if split.username or split.password else None
        self.address = without_credentials(base)
        try:
            context = ssl.create_default_context(cafile=certificates) if certificates else True
        except OSError as error:
            raise ExportError(f"the certificates {os.path.basename(certificates or '')} can't be read") from error
        self._client = httpx.Client(headers=dict(headers or {}), auth=auth or own, timeout=patience_s, verify=context)

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()

    def ask(self, method: str, path: str, *, allow: tuple[int, ...] = (), **content: Any) -> httpx.Response:
        """Send one request to the address with `path` behind it; return the response if it is one of success.

        Raises:
            ExportError: nobody answered, or with a status that is neither a success nor in `allow`.
        """
        url = self.address + path
        try:
            response = self._client.request(method, url, **content)
        except httpx.HTTPError as error:
            why = one_line(str(error), 200) or type(error).__name__
            raise ExportError(f"{self.address} could not be reached: {why}") from error
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ExportError(f"{self.address} is no address: {one_line(str(error), 200)}") from error
        if response.is_success or response.status_code in allow:
            return response
        if response.status_code in (401, 403):
            raise ExportError(f"{self.address} refused the credentials ({response.status_code}); check them")
        if response.is_redirect:
            raise ExportError(f"{self.address} sends on to another address; name that one")
        detail = one_line(response.text[:2000], 300)
        raise ExportError(f"{self.address} answered {response.status_code}: {detail}")


def without_credentials(url: str) -> str:
    """Return an address without user, password, query and trailing slashes."""
    split = urlsplit(url)
    return urlunsplit((split.scheme, split.netloc.rpartition("@")[2], split.path.rstrip("/"), "", ""))
