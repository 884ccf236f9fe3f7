"""Connections to the engine's Unix socket.

docker-py's own leave a socket open for the garbage collector when the engine does not answer, and make a pool of
connections for every single address. These close it, and are one pool.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, cast

from docker.transport.unixconn import UnixHTTPAdapter, UnixHTTPConnection, UnixHTTPConnectionPool

if TYPE_CHECKING:  # it exists for type checkers alone
    from urllib3._base_connection import BaseHTTPConnection

POOL_CONNECTIONS = 32


class Connection(UnixHTTPConnection):
    """A connection that is closed if it cannot be made."""

    def connect(self) -> None:
        """Connect.

        Raises:
            OSError: Nobody listens, or we may not connect.
        """
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            stream.settimeout(self.timeout)
            stream.connect(self.unix_socket)
        except BaseException:
            stream.close()
            raise
        self.sock = stream


class ConnectionPool(UnixHTTPConnectionPool):
    """All connections to one socket."""

    def __init__(self, base_url: str, socket_path: str, seconds: int) -> None:
        """A pool for one socket; `seconds` is how long connecting may take."""
        super().__init__(base_url, socket_path, seconds, maxsize=POOL_CONNECTIONS)
        self._seconds = seconds

    def _new_conn(self) -> BaseHTTPConnection:
        return cast("BaseHTTPConnection", Connection(self.base_url, self.socket_path, self._seconds))


class UnixAdapter(UnixHTTPAdapter):
    """What `requests` sends by."""

    def __init__(self, address: str, seconds: int) -> None:
        """Send to the socket at `unix://PATH`."""
        super().__init__(address.replace("unix://", "http+unix://", 1), seconds, pool_connections=1)

    def get_connection(self, url: bytes | str, proxies: object = None) -> UnixHTTPConnectionPool:  # noqa: ARG002 - as requests calls it
        """The one pool, whatever is asked for."""
        with self.pools.lock:
            pool: UnixHTTPConnectionPool | None = self.pools.get("engine")
            if pool is None:
                pool = ConnectionPool("engine", self.socket_path, self.timeout)
                self.pools["engine"] = pool
            return pool
