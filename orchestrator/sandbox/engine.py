"""The container engine's API: every call with its own deadline, every foreign error translated here and nowhere else.

An engine call can hang for ever (a container whose output nobody reads wedges its engine), so no call goes out without
a deadline. `Engine.call` is the one way to docker-py; `Engine.find` is the same for things that may be absent.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self, TypeVar, cast

import docker
import docker.errors
import requests
import urllib3

from orchestrator.errors import EngineTimeout, EngineUnavailable, EvolvariumError, SandboxError
from orchestrator.sandbox.transport import UnixAdapter

T = TypeVar("T")
DEFAULT_HOST = "unix:///var/run/docker.sock"
MINIMUM_API = "1.41"  # one-shot statistics and cgroup namespaces
CALL_SECONDS = 20.0
PROBE_SECONDS = 5
STATS_SECONDS = 2.0
REMOVAL_SECONDS = 30.0


class _Client(docker.APIClient):
    """docker-py's client with the deadline of the current call on every request, also where docker-py sets none."""

    def __init__(self, address: str) -> None:
        self._current = threading.local()
        super().__init__(base_url=address, version=MINIMUM_API, timeout=PROBE_SECONDS)
        self.trust_env = False  # no proxy and no .netrc between us and the engine
        if address.startswith("unix://"):
            self.mount("http+docker://", UnixAdapter(address, PROBE_SECONDS))
        with self.within(PROBE_SECONDS):
            self._version = str(self.version(api_version=False)["ApiVersion"])

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Give the requests of this thread a deadline."""
        outer = getattr(self._current, "seconds", CALL_SECONDS)
        self._current.seconds = seconds
        try:
            yield
        finally:
            self._current.seconds = outer

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:  # noqa: ANN401 - what requests takes
        """Send a request; the current deadline overrides whatever timeout was asked for."""
        kwargs["timeout"] = getattr(self._current, "seconds", CALL_SECONDS)
        response: requests.Response = super().request(*args, **kwargs)
        return response


class Engine:
    """One engine. Thread-safe; `close` it, or use it as a context manager."""

    def __init__(self, client: _Client, host: str) -> None:
        self._client = client
        self.host = host
        """Where it listens, for messages."""

    @classmethod
    def connect(cls, host: str | None = None) -> Self:
        """The engine at `host`, else at DOCKER_HOST, else at the default socket.

        Raises:
            EngineUnavailable: None answers, it is too old, or its address is not supported; with the remedy.
        """
        address = host or os.environ.get("DOCKER_HOST") or DEFAULT_HOST
        if not address.startswith(("unix://", "tcp://")) or os.environ.get("DOCKER_TLS_VERIFY"):
            msg = (
                f"engine address {address!r} is not supported; set DOCKER_HOST to unix://PATH (or tcp:// without TLS),"
                " for a remote engine by a tunnel: ssh -L ./engine.sock:/var/run/docker.sock HOST"
            )
            raise EngineUnavailable(msg)
        try:
            client = _Client(address)
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            raise EngineUnavailable(_remedy(address, error)) from error
        engine = cls(client, address)
        if _version(client.api_version) < _version(MINIMUM_API):
            engine.close()
            msg = f"the Docker engine at {address} speaks API {client.api_version}; install Docker 20.10 or newer"
            raise EngineUnavailable(msg)
        return engine

    def close(self) -> None:
        """Close the connections; idempotent."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def api_version(self) -> str:
        """For instance `1.41`."""
        return str(self._client.api_version)

    def call(self, what: str, operation: Callable[[docker.APIClient], T], *, seconds: float = CALL_SECONDS) -> T:
        """Run an operation on docker-py's client.

        Args:
            what: For messages, a verb phrase such as `start container 1a2b`.
            operation: Must not keep the client.
            seconds: The engine may be silent for this long, at most.

        Raises:
            EngineUnavailable: No engine answers.
            EngineTimeout: It did not answer in time.
            SandboxError: It refused.
        """
        with translated(what, self.host, seconds), self._client.within(seconds):
            return operation(self._client)

    def find(self, what: str, operation: Callable[[docker.APIClient], T], *, seconds: float = CALL_SECONDS) -> T | None:
        """Like `call`; None when the engine says that there is no such object."""

        def absent_is_none(client: docker.APIClient) -> T | None:
            try:
                return operation(client)
            except docker.errors.NotFound:
                return None

        return self.call(what, absent_is_none, seconds=seconds)

    def info(self) -> dict[str, Any]:
        """The engine's description of itself."""
        return dict(self.call("ask the engine about itself", lambda client: client.info()))

    def create(self, settings: Mapping[str, Any]) -> str:
        """Create a container from the body of the API's create call and return its id; `Name` goes into the URL."""
        body = {key: value for key, value in settings.items() if key != "Name"}
        answer = self.call(
            f"create container {settings['Name']}",
            lambda client: cast(Any, client).create_container_from_config(body, settings["Name"]),
        )
        return str(answer["Id"])

    def attach(self, container: str) -> socket.socket:
        """The raw stream of a created, not yet started container: stdin in, multiplexed stdout and stderr out."""
        params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}

        def operation(client: docker.APIClient) -> socket.socket:
            stream = cast(Any, client.attach_socket(container, params=params))
            # A duplicate of our own: the transport closes its descriptor whenever its response is collected.
            with stream, stream._sock as original:
                return cast(socket.socket, original.dup())

        return self.call(f"attach to {container[:12]}", operation)

    def start(self, container: str) -> None:
        """Start a created container."""
        self.call(f"start {container[:12]}", lambda client: client.start(container))

    def kill(self, container: str, *, seconds: float = CALL_SECONDS) -> None:
        """SIGKILL; fine when it is not running, or gone, or already dying. Close or drain its stream first."""

        def operation(client: docker.APIClient) -> None:
            try:
                client.kill(container)
            except docker.errors.APIError as error:
                if error.status_code not in (404, 409) and not _is_dying(error):
                    raise

        self.call(f"kill {container[:12]}", operation, seconds=seconds)

    def inspect(self, container: str, *, seconds: float = CALL_SECONDS) -> dict[str, Any] | None:
        """What the engine knows of a container; None: there is none."""
        return self.find(
            f"inspect {container[:12]}", lambda client: dict(client.inspect_container(container)), seconds=seconds
        )

    def stats(self, container: str) -> dict[str, Any] | None:
        """One reading of a running container's resources; None: there is no such container."""
        return self.find(
            f"read the statistics of {container[:12]}",
            lambda client: cast(dict[str, Any], client.stats(container, stream=False, one_shot=True)),
            seconds=STATS_SECONDS,
        )

    def events(self, container: str, since: float, until: float) -> list[dict[str, Any]]:
        """What happened to a container between two Unix times, as far as the engine remembers."""

        def operation(client: docker.APIClient) -> list[dict[str, Any]]:
            window = {"since": int(since), "until": int(until), "filters": {"container": container}}
            return list(cast(Any, client).events(decode=True, **window))

        return self.call(f"list the events of {container[:12]}", operation)

    def remove(self, container: str) -> None:
        """Remove a container in whatever state, and see to it that it is gone; idempotent.

        Raises:
            EngineTimeout: It is still there after `REMOVAL_SECONDS`.
        """

        def operation(client: docker.APIClient) -> None:
            try:
                client.remove_container(container, force=True, v=False)
            except docker.errors.APIError as error:
                # 409: somebody else is removing it
                if error.status_code not in (404, 409) and not _is_dying(error):
                    raise

        deadline = time.monotonic() + REMOVAL_SECONDS
        while True:
            self.call(f"remove {container[:12]}", operation)
            if self.inspect(container) is None:
                return
            if time.monotonic() > deadline:
                msg = f"container {container[:12]} is still there {REMOVAL_SECONDS:.0f} s after its removal"
                raise EngineTimeout(msg)
            time.sleep(0.1)

    def containers(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Containers in any state that carry all these labels; an empty value stands for any."""
        wanted = [f"{key}={value}" if value else key for key, value in labels.items()]
        return self.call("list containers", lambda client: list(client.containers(all=True, filters={"label": wanted})))

    def volumes(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Volumes that carry all these labels; an empty value stands for any."""
        wanted = [f"{key}={value}" if value else key for key, value in labels.items()]
        answer = self.call("list volumes", lambda client: client.volumes(filters=cast(Any, {"label": wanted})))
        return list(answer.get("Volumes") or [])

    def create_volume(self, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
        """Create a volume; one that exists already is returned as it is, with the labels of its first creator."""
        return dict(
            self.call(f"create volume {name}", lambda client: client.create_volume(name=name, labels=dict(labels)))
        )

    def volume(self, name: str) -> dict[str, Any] | None:
        """What the engine knows of a volume; None: there is none."""
        return self.find(f"inspect volume {name}", lambda client: dict(client.inspect_volume(name)))

    def remove_volume(self, name: str) -> bool:
        """Remove a volume; False: a container uses it, so that it stays. One that is absent counts as removed."""

        def operation(client: docker.APIClient) -> bool:
            try:
                client.remove_volume(name)
            except docker.errors.APIError as error:
                if error.status_code not in (404, 409):
                    raise
                return error.status_code == 404
            return True

        return self.call(f"remove volume {name}", operation)


@contextmanager
def translated(what: str, host: str, seconds: float) -> Iterator[None]:
    """Turn what docker-py and its transport raise into our errors."""
    try:
        yield
    except EvolvariumError:
        raise
    except (requests.ConnectTimeout, requests.ReadTimeout, urllib3.exceptions.ReadTimeoutError, TimeoutError) as error:
        msg = f"the engine did not {what} within {seconds:g} s"
        raise EngineTimeout(msg) from error
    except docker.errors.APIError as error:
        msg = f"the engine did not {what}: {error.explanation or error}"
        raise SandboxError(msg) from error
    except requests.ConnectionError as error:
        if "timed out" in str(error).lower():
            msg = f"the engine did not {what} within {seconds:g} s"
            raise EngineTimeout(msg) from error
        raise EngineUnavailable(_remedy(host, error)) from error
    except (docker.errors.DockerException, requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        msg = f"the engine did not {what}: {error}"
        raise SandboxError(msg) from error


def _is_dying(error: docker.errors.APIError) -> bool:
    """Whether a container was not killed because it is dead, and the engine on a loaded host has yet to notice.

    The first process of a container becomes a zombie only after all others of it are gone. The engine (moby's
    daemon/kill.go) then refuses to signal it, with status 500; it writes the end down a moment later.
    """
    return "is zombie" in str(error.explanation or "")


def _remedy(host: str, error: BaseException) -> str:
    if "Permission denied" in str(error):
        return f"no permission for the Docker engine at {host}; join the group 'docker' and log in again"
    return f"no Docker engine answers at {host}; start it (`systemctl start docker`) or set DOCKER_HOST"


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
