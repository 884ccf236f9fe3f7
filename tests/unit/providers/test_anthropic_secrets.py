"""Whose key a request of the Messages API carries, and where that key never turns up."""

from __future__ import annotations

import base64
import datetime
import io
import ipaddress
import json
import logging
import ssl
import threading
import traceback
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from orchestrator.llm.providers.shown_errors import MAX_SHOWN, shown_error
from orchestrator.llm.providers.wire import Fault, Secret
from tests.model_servers.anthropic import AnthropicServer
from tests.model_servers.anthropic_client import WIRE, client
from tests.model_servers.anthropic_errors import error_body
from tests.model_servers.base import KEY, Trouble, Turn

LOGGERS = ("anthropic", "httpx2", "httpcore2", "")


@pytest.fixture
def foreign_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever the SDK would take from the machine."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-the-machine")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-of-the-machine")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_PROFILE", "work")
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    headers = "X-Api-Key: of-the-machine\nauthorization: Bearer other\nX-Secret: of-the-machine\nHost: elsewhere"
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", headers)
    profile = {"base_url": "http://127.0.0.1:9", "access_token": "of-the-machine"}
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "work.json").write_text(json.dumps(profile))


@pytest.mark.usefixtures("foreign_environment")
@pytest.mark.parametrize("key", [KEY, None])
def test_nothing_of_the_machine_changes_where_a_request_goes_or_whose_key_it_carries(key: str | None) -> None:
    with AnthropicServer([Turn(text="here")], key=key) as server, client(server, key=key) as asked:
        assert asked.ask().messages[0].text == "here"
        assert asked.connection.facts("claude-opus-5", seconds=2).is_known
        for request in (*server.requests, *server.others):
            assert request.headers.get("authorization") == (None if key is None else f"Bearer {KEY}")
            assert request.headers["host"] == server.url.removeprefix("http://")
            assert "of-the-machine" not in str(request.headers)
            assert "x-api-key" not in request.headers


def test_a_client_without_a_key_finds_none() -> None:
    with AnthropicServer([Turn(text="x")]) as server, client(server, key=None) as asked:
        failure = asked.fail()
    assert failure.fault is Fault.ACCESS
    assert "authorization" not in server.refused[0][0].headers


def test_the_key_is_in_no_exception_text_and_in_no_log_record() -> None:
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s"))
    levels = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.DEBUG)
    logging.getLogger().addHandler(handler)
    try:
        seen = _everything_said()
    finally:
        logging.getLogger().removeHandler(handler)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
    assert "Sending HTTP Request" in log.getvalue()
    assert "receive_response_headers" in log.getvalue()
    for text in (log.getvalue(), seen):
        assert KEY not in text
        assert base64.b64encode(KEY.encode()).decode()[:20] not in text


def _everything_said() -> str:
    troubles = (
        Trouble(status=401),
        Trouble(status=500),
        Trouble(drop_after=2),
        Trouble(silent_seconds=2),
        Trouble(raw=b""),
    )
    said = []
    with AnthropicServer([*troubles, Turn(text="x")]) as server, client(server, chunk_seconds=0.2) as asked:
        for _ in troubles:
            exchange = asked.connection.begin(asked.parameters())
            try:
                list(exchange)
            except Exception as error:  # noqa: BLE001 - whatever it is
                said += ["".join(traceback.format_exception(error)), repr(error), str(vars(error))]
                said += [repr(WIRE.failure(error, has_begun=exchange.has_begun, key=asked.key))]
            said += [repr(exchange), str(vars(exchange))]
        assert asked.ask()
        said += [repr(asked.connection), str(vars(asked.connection)), repr(asked.key)]
    return "\n".join(said)


CORE = base64.b64encode(KEY.encode()).decode().rstrip("=")[:-1]


@pytest.mark.parametrize(
    "shown",
    [
        KEY,
        quote(KEY, safe=""),
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(f"user:{KEY}".encode()).decode(),
        base64.b64encode(f"ab{KEY}cd".encode()).decode(),
        KEY[:8] + "..." + KEY[-8:],
        KEY[:12] + "****",
        "..." + KEY[-11:],
        KEY[:-1],
        KEY + KEY,
    ],
)
def test_a_key_that_a_server_shows_is_hidden(shown: str) -> None:
    body = error_body(401, f"Incorrect API key provided: {shown}. Find yours in the console.")
    with AnthropicServer([Trouble(status=401, body=body)]) as server, client(server) as asked:
        message = asked.fail().message
    assert "***" in message
    assert "Find yours in the console." in message
    for part in (*_parts(KEY), *_parts(CORE)):
        assert part not in message


def _parts(text: str) -> tuple[str, str]:
    return text[:8], text[-8:]


def test_what_looks_like_any_key_is_hidden() -> None:
    assert shown_error("key sk-ant-api03-abcdefghijkl of you", None) == "key *** of you"
    assert shown_error("a task-oriented answer", None) == "a task-oriented answer"


def test_hiding_ends_whatever_the_text_and_the_key() -> None:
    assert shown_error("* " * 1_000_000, Secret("*" * 40)).count("*") > 0
    assert len(shown_error("ab" * 100_000, Secret("abababababababab"))) <= MAX_SHOWN
    assert shown_error("nothing", Secret("x")) == "nothing"


def test_a_certificate_that_is_not_accepted_is_a_matter_of_access(tmp_path: Path) -> None:
    with AnthropicServer([Turn(text="x")]) as server:
        _secure(server, tmp_path)
        with client(server.url.replace("http:", "https:")) as asked:
            failure = asked.fail()
    assert (failure.fault, failure.may_be_paid) == (Fault.ACCESS, False)
    assert "certificate" in failure.message


def test_a_reader_behind_tls_can_be_woken_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with AnthropicServer([Turn(text="safe"), Trouble(stall_after=3), Trouble(silent_seconds=30)]) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(_secure(server, tmp_path)))
        with client(server.url.replace("http:", "https:")) as asked:
            assert asked.ask().messages[0].text == "safe"
            for _ in range(2):
                exchange = asked.connection.begin(asked.parameters())
                timer = threading.Timer(0.3, exchange.shut)
                timer.start()
                with pytest.raises(Exception, match=r"\w") as raised:
                    list(exchange)
                timer.join()
                failure = WIRE.failure(raised.value, has_begun=exchange.has_begun, key=asked.key)
                assert (failure.fault, failure.may_be_paid) == (Fault.BROKEN, True)


def _secure(server: AnthropicServer, folder: Path) -> Path:
    """Have a server speak TLS from now on; gives the file of its certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "certificate.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    secret = folder / "key.pem"
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, secret)
    assert server._server is not None
    server._server.socket = context.wrap_socket(server._server.socket, server_side=True, do_handshake_on_connect=False)
    return pem
