"""Who may use the server: a layer around the whole application, so that no route is reached unchecked.

A server on this computer alone is not safe by that: every page in a browser, and every other user, can reach it. So
each request needs the token of this start; its Host must be a known name, against pages whose own name is made to lead
here (DNS rebinding); and what changes something must not come from a page of another site.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ssil.core.errors import UserError
from ssil.studio.page_templates import rendered

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""Of requests that change nothing."""
OWN_SITE = ("same-origin", "none")
"""The values of Sec-Fetch-Site of our own pages and of the address bar."""
PUBLIC = "/health"
"""The path that needs no token: it tells nothing but that the server is well."""
ENTER = "/enter"
"""The path that turns a token in its address into a cookie."""
MIN_TOKEN = 16
"""Characters of a token that is given."""
HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer, the Origin of our own forms would be null
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Of every answer."""
NO_STORE = "no-store"


@dataclass(frozen=True)
class Access:
    """What a request must have."""

    token: str
    names: frozenset[str]
    """Names of this server in the Host header."""
    any_address: bool = False
    """Whether any IP address will do as Host; a name could be made to lead here, an address can't."""
    cookie: str = "ssil"
    max_bytes: int = 64 << 20
    """Of a request's body."""


def make_access(
    host: str, port: int, names: Iterable[str] = (), token: str | None = None, megabytes: int = 64
) -> Access:
    """Return the rules for a server on this address.

    Args:
        host: The address to listen on.
        port: The port; it is part of the cookie's name, since cookies are shared by all ports.
        names: Further names under which the server is reached.
        token: What requests must show; by default a random one.
        megabytes: The largest body of a request.

    Raises:
        UserError: The host is not loopback and there is no token, or the token is short.
    """
    if token is not None and (len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable()):
        raise UserError(f"SSIL_TOKEN: the token is too short or not plain text; give {MIN_TOKEN} characters or more")
    local = is_loopback(host)
    if not local and token is None:
        raise UserError(
            f"host: {host} is reached by other computers, so a token is needed; set SSIL_TOKEN in the environment to "
            f"{MIN_TOKEN} characters or more, or leave --host out"
        )
    known = {"localhost", "127.0.0.1", "::1", host.lower(), *(name.lower().rstrip(".") for name in names)}
    made = token or secrets.token_urlsafe(24)
    return Access(made, frozenset(known), not local, f"ssil-{port}", megabytes << 20)


def is_loopback(host: str) -> bool:
    """Return whether an address is reached from this computer alone.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Refuses requests that `Access` does not allow, counts the bytes of bodies, and adds headers to all answers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application answer."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        answer = self._own_answer(scope, Headers(scope=scope)) or self.app
        await answer(scope, _counted(receive, self.access.max_bytes), _with_headers(send))

    def _own_answer(self, scope: Scope, headers: Headers) -> Response | None:
        """Return a refusal, or the answer to a token in the address; None for what the application answers."""
        if not self._is_known_host(headers.get("host", "")):
            return refusal(421, "host: this server is not known by that name; see --name of ssil serve")
        if scope["method"] not in SAFE_METHODS and not _is_own_page(headers):
            return refusal(403, "origin: the request comes from a page of another site")
        if _declared_length(headers) > self.access.max_bytes:
            return refusal(413, f"body: more than {self.access.max_bytes >> 20} MB; send fewer images at a time")
        if scope["path"] == ENTER:
            return self._enter(scope, headers)
        return None if scope["path"] == PUBLIC or self._has_token(headers) else locked(headers)

    def _is_known_host(self, host: str) -> bool:
        name = _host_name(host)
        if name in self.access.names:
            return True
        try:
            return self.access.any_address and bool(ip_address(name))
        except ValueError:
            return False

    def _has_token(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        shown = given.strip() if kind.lower() == "bearer" else _cookie(headers.get("cookie", ""), self.access.cookie)
        return self._is_token(shown)

    def _is_token(self, given: str) -> bool:
        return compare_digest(given.encode(errors="replace"), self.access.token.encode())

    def _enter(self, scope: Scope, headers: Headers) -> Response:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["method"] not in SAFE_METHODS or not self._is_token(given):
            return locked(headers)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(self.access.cookie, self.access.token, httponly=True, samesite="strict", path="/")
        return answer


def refusal(status: int, reason: str) -> Response:
    """Return an answer that says why a request is refused."""
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse({"detail": reason}, status, headers)


def locked(headers: Headers) -> Response:
    """Return the refusal of a request without the token; for people who look at pages it is one."""
    if "text/html" not in headers.get("accept", ""):
        return refusal(401, "token: missing or wrong; open the address that the command has printed")
    address = f"http://{headers.get('host', '')}{ENTER}?token=..."
    return HTMLResponse(rendered("locked.html", address=address), 401, {"www-authenticate": "Bearer"})


def _host_name(host: str) -> str:
    """Return the name in a Host header, without its port.

    >>> _host_name("LOCALHOST:8000"), _host_name("[::1]:8000"), _host_name("[")
    ('localhost', '::1', '')
    """
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_own_page(headers: Headers) -> bool:
    """Return whether a browser says that the request is from our own page; programs say nothing."""
    origin = headers.get("origin")
    same = origin is None or urlsplit(origin).netloc == headers.get("host")
    return same and headers.get("sec-fetch-site", "none") in OWN_SITE


def _declared_length(headers: Headers) -> int:
    length = headers.get("content-length", "")
    return int(length) if length.isdecimal() else 0


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def _counted(receive: Receive, most: int) -> Receive:
    """Return `receive`, which raises the answer 413 after `most` bytes: a body need not declare its length."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise HTTPException(413, f"body: more than {most >> 20} MB; send fewer images at a time")
        return message

    return counted


def _with_headers(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            headers.setdefault("cache-control", NO_STORE)
        await send(message)

    return with_headers
