"""What an evolver's tools do. Whatever it does wrong is an answer to it and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator.domain.agent_packages import AgentPackage
from orchestrator.domain.conversation import ToolCall, ToolResult
from orchestrator.methods.robophd import texts
from orchestrator.methods.robophd.draft import Draft
from orchestrator.methods.robophd.members import Member
from orchestrator.search.tool_calls import ToolError, checked_arguments, refusal, success
from orchestrator.sql.quoting import json_line

_DESCRIPTION_CHARACTERS = 1000


class Toolbox:
    """The tools of one evolution, over one draft. Not thread-safe."""

    def __init__(
        self,
        *,
        members: Mapping[str, Member],
        databases: Sequence[str],
        errors: Callable[[str, str], Mapping[str, Any]],
        run_tool: Callable[[AgentPackage, str], Mapping[str, Any]],
        tries: int,
    ) -> None:
        """Nothing is written yet.

        Args:
            members: The pool.
            databases: Those the tool may be tried on.
            errors: Package and database to its error reports, as JSON; raises `ToolError` where it was asked nothing.
            run_tool: Package and database to what its tool gave, as JSON.
            tries: How often it may be called.
        """
        self.draft = Draft()
        self.is_finished = False
        """Whether the draft was handed in, and nothing changes any more; otherwise it is being worked on."""
        self.description = ""
        """What it was handed in with, the last time; untrusted."""
        self.read_members: list[str] = []
        """Packages of which a file was read, in order."""
        self._members = members
        self._databases = tuple(databases)
        self._errors = errors
        self._run_tool = run_tool
        self._tries_left = tries

    def execute(self, call: ToolCall) -> ToolResult:
        """The answer to a call."""
        try:
            return success(call, self._answer(call.name, checked_arguments(call, texts.tool_specs())))
        except ToolError as error:
            return refusal(call, error)

    def reopen(self) -> None:
        """Let a finished draft be worked on again."""
        self.is_finished = False

    def _answer(self, name: str, arguments: Mapping[str, str]) -> str:
        if self.is_finished:
            msg = "the package is handed in, so this was not done; wait for the next message"
            raise ToolError(msg)
        match name:
            case "read":
                answer = self.draft.read(arguments["file"])
            case "write":
                size = self.draft.write(arguments["file"], arguments["content"])
                answer = json_line({"file": arguments["file"], "bytes": size})
            case "edit":
                size = self.draft.edit(arguments["file"], arguments["old"], arguments["new"])
                answer = json_line({"file": arguments["file"], "bytes": size})
            case "read_package":
                answer = self._file_of(arguments["id"], arguments["file"])
            case "read_errors":
                member = self._known(arguments["id"])
                answer = json_line(self._errors(member.id, arguments["database"]))
            case "try_tool":
                answer = json_line(self._tried(self._database(arguments["database"])))
            case _:
                answer = self._finish(arguments["description"])
        return answer

    def _file_of(self, member_id: str, file: str) -> str:
        member = self._known(member_id)
        if file not in member.package.tree:
            msg = f"package {member.id} has no file {file[:80]!r}; it has {', '.join(member.package.tree)}"
            raise ToolError(msg)
        if member.id not in self.read_members:
            self.read_members.append(member.id)
        return member.package.tree[file].decode("utf-8")

    def _known(self, member_id: str) -> Member:
        if member_id not in self._members:
            msg = f"there is no package {member_id[:80]!r} in the pool; there are {', '.join(self._members)}"
            raise ToolError(msg)
        return self._members[member_id]

    def _database(self, name: str) -> str:
        if name not in self._databases:
            msg = f"the tool cannot be tried on {name[:80]!r}; it can on {', '.join(self._databases)}"
            raise ToolError(msg)
        return name

    def _tried(self, database: str) -> Mapping[str, Any]:
        if self._tries_left <= 0:
            msg = "no try is left; finish the package"
            raise ToolError(msg)
        package = self.draft.package()
        self._tries_left -= 1
        return {**self._run_tool(package, database), "tries_left": self._tries_left}

    def _finish(self, description: str) -> str:
        self.draft.package()  # raises where it is none
        self.is_finished = True
        self.description = " ".join(description.split())[:_DESCRIPTION_CHARACTERS]
        return json_line({"accepted": True})
