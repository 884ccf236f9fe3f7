"""Families of tasks: packages that share code, texts and most of their `task.yaml`.

A family is a folder with `family.yaml`; its members are the folders in it that have a `task.yaml`. What a member's
`task.yaml` does not say is said by its group in `family.yaml`, or for all members; what its folder does not hold is
taken from the family's. A member is known as `family/member`.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, ValidationError

from orchestrator.domain.written_settings import WrittenSettings
from orchestrator.errors import InputError
from orchestrator.evaluation.package_files import Problems, read_text
from orchestrator.evaluation.task_document import TASK_FILE
from orchestrator.evaluation.task_signatures import Name
from orchestrator.runtime.complaints import complaint
from orchestrator.runtime.strict_yaml import load_yaml
from orchestrator.runtime.user_files import kind_at

FAMILY_FILE = "family.yaml"
MEMBER_FILE = "member.json"
"""Lies beside `evaluate.py` of a member: `{"name": "PO0", "parameters": {...}}`."""
_TEMPLATE = ".template"
_MAX_FILLED_CHARACTERS = 4 << 20
"""Of a file with its texts in it."""
_OWN_KEYS = frozenset({"group", "texts", "parameters"})
"""Of a member's `task.yaml`, beside those of every task's."""


class GroupSpec(WrittenSettings):
    """What some members have in common."""

    task: dict[str, Any] = Field(default_factory=dict)
    """Keys of a `task.yaml`."""
    texts: dict[Name, str] = Field(default_factory=dict)
    """What `${name}` stands for in the description, and in files of the initial program called `*.template`."""
    parameters: dict[Name, JsonValue] = Field(default_factory=dict)
    """What the evaluator's code finds in `member.json`."""


class FamilySpec(GroupSpec):
    """A `family.yaml`; its own task, texts and parameters hold for all members."""

    version: Literal[1]
    title: Annotated[str, Field(min_length=1, max_length=300)]
    """One line for people."""
    groups: dict[Name, GroupSpec] = Field(default_factory=dict)


class MemberSpec(GroupSpec):
    """What is a member's own in its `task.yaml`; `task` stands for the other keys."""

    group: Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """Where the parts of a package lie, and what its `task.yaml` says, with all that it shares."""

    name: str
    """The folder's, or `family/member`."""
    document: Any
    """As of YAML, of any form."""
    folders: Sequence[Path]
    """The package's own, and its family's."""
    texts: Mapping[str, str] | None = None
    """None: it is of no family, and its files are taken as they stand."""
    added: Mapping[str, bytes] = field(default_factory=dict)
    """Files that are put beside `evaluate.py`."""

    def place(self, path: str) -> Path:
        """The folder that a part is to be read from."""
        return next((folder for folder in self.folders if _exists(folder / path)), self.folders[-1])

    def filled(self, path: str, text: str) -> str:
        """A file's text with the member's own words in it.

        Raises:
            Problems: A placeholder stands for nothing.
        """
        if self.texts is None:
            return text
        names = (found["named"] or found["braced"] or "" for found in Template.pattern.finditer(text))
        if len(text) + sum(len(self.texts.get(name, "")) for name in names) > _MAX_FILLED_CHARACTERS:
            msg = f"{path}: has more than {_MAX_FILLED_CHARACTERS} characters with the texts of {self.name!r} in it"
            raise Problems(f"{msg}; use shorter texts, or fewer of them")
        try:
            return Template(text).substitute(self.texts)
        except KeyError as error:
            known = ", ".join(self.texts)
            msg = f"{path}: ${{{error.args[0]}}} is no text of {self.name!r}; it has {known}"
            raise Problems(msg) from error
        except ValueError as error:
            msg = f"{path}: has a '$' that begins no placeholder; write $$ for the sign itself, or ${{name}}"
            raise Problems(msg) from error

    def filled_files(self, folder: str, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Files of a member's program: each `NAME.template` as `NAME`, with the member's own words in it.

        Raises:
            Problems: A template is no text, or a placeholder stands for nothing.
        """
        if self.texts is None:
            return dict(files)
        filled = {}
        for name, content in files.items():
            if not name.endswith(_TEMPLATE):
                filled[name] = content
                continue
            try:
                text = content.decode()
            except UnicodeDecodeError as error:
                msg = f"{folder}/{name}: is not UTF-8 at byte {error.start}; save it as UTF-8"
                raise Problems(msg) from error
            if name.removesuffix(_TEMPLATE) in files:
                msg = f"{folder}/{name}: would become {name.removesuffix(_TEMPLATE)!r}, which is there, too; remove one"
                raise Problems(msg)
            filled[name.removesuffix(_TEMPLATE)] = self.filled(f"{folder}/{name}", text).encode()
        return filled


def package_name(folder: Path) -> str:
    """What a package is called: its folder's name, after that of its family."""
    place = folder.resolve()
    return f"{place.parent.name}/{place.name}" if is_family(place.parent) else place.name


def is_family(folder: Path) -> bool:
    """Whether a folder holds a family of tasks."""
    return _exists(folder / FAMILY_FILE)


def members(family: Path) -> dict[str, Path]:
    """Folders of a family's members by their whole names."""
    folders = sorted(file.parent for file in family.glob(f"*/{TASK_FILE}"))
    return {f"{family.resolve().name}/{folder.name}": folder for folder in folders}


def read_package(folder: Path) -> Package:
    """What is said of a package, in its own `task.yaml` and in its family's file.

    Raises:
        Problems: A file is missing, no text or no YAML, or says what no family or member can.
    """
    own = _document(folder, TASK_FILE)
    family = folder.resolve().parent
    name = package_name(folder)
    if not is_family(family):
        return Package(name=name, document=own, folders=(folder,))
    shared = _family(family)
    member = _member(own)
    if member.group is not None and member.group not in shared.groups:
        groups = ", ".join(shared.groups) or "none"
        msg = f"{TASK_FILE}: `group` is {member.group!r}; the groups of {FAMILY_FILE} are {groups}"
        raise Problems(msg)
    parts = [shared, *([] if member.group is None else [shared.groups[member.group]]), member]
    document = {"name": name, **{key: value for part in parts for key, value in part.task.items()}}
    about = {"name": folder.resolve().name, "parameters": {k: v for part in parts for k, v in part.parameters.items()}}
    return Package(
        name=name,
        document=document,
        folders=(folder, family),
        texts={"name": name, **{key: value for part in parts for key, value in part.texts.items()}},
        added={MEMBER_FILE: json.dumps(about, sort_keys=True).encode()},
    )


def _family(folder: Path) -> FamilySpec:
    try:
        return FamilySpec.model_validate(_document(folder, FAMILY_FILE))
    except ValidationError as error:
        raise Problems(*_complaints(FAMILY_FILE, error)) from error


def _member(own: object) -> MemberSpec:
    if not isinstance(own, Mapping):
        msg = f"{TASK_FILE}: must be a mapping of keys to values"
        raise Problems(msg)
    fields = {key: value for key, value in own.items() if key in _OWN_KEYS}
    try:
        return MemberSpec.model_validate({**fields, "task": {k: v for k, v in own.items() if k not in _OWN_KEYS}})
    except ValidationError as error:
        raise Problems(*_complaints(TASK_FILE, error)) from error


def _complaints(file: str, error: ValidationError) -> Iterator[str]:
    return (f"{file}: {complaint(detail)}" for detail in error.errors())


def _document(folder: Path, file: str) -> Any:  # noqa: ANN401 - any document of YAML
    text = read_text(folder, file)
    try:
        return load_yaml(text.encode(), file)
    except InputError as error:
        raise Problems(str(error)) from error


def _exists(path: Path) -> bool:
    try:
        return stat.S_IFMT(kind_at(path)) != 0
    except OSError:
        return False
