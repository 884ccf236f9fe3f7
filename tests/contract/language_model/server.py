"""Serves the offline engine over HTTP on this machine: JSON of `domain.records` in, JSON of `domain.records` out.

Prints the port, then answers `POST /<what>` until its stdin ends.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from orchestrator.domain.conversation import Conversation, Sampling, ToolSpec
from orchestrator.domain.records import from_record, to_record
from orchestrator.llm.offline import OfflineModel

MODEL = OfflineModel(context_tokens=int(sys.argv[1]), effort=float(sys.argv[2]))


def answer(what: str, request: dict[str, Any]) -> Any:
    if what == "properties":
        return {"name": MODEL.name, "context_tokens": MODEL.context_tokens, "is_repeatable": MODEL.is_repeatable}
    conversation = from_record(Conversation, request["conversation"])
    tools = tuple(from_record(ToolSpec, tool) for tool in request["tools"])
    if what == "count_tokens":
        return MODEL.count_tokens(conversation, tools)
    sampling = from_record(Sampling, request["sampling"])
    return to_record({"worst_case": MODEL.worst_case, "complete": MODEL.complete}[what](conversation, tools, sampling))


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(answer(self.path.strip("/"), request)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the base class
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)  # noqa: T201 - how the test learns it
    sys.stdin.read()
