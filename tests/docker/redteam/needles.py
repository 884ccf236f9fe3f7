"""What hostile code is sent to look for: hidden bytes, told by hashes, so that the search itself holds none of them."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.task_spec import GeneratedSplit
from orchestrator.evaluation.tasks import Task
from orchestrator.sandbox.adapter import DockerSandbox

SIZE = 32
"""Bytes of a needle."""
WEIGHTS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)
"""Of its four words of 64 bits; any odd numbers do."""
_FEWEST_DIFFERENT = 8
"""Bytes in a needle: rows of spaces, zeros or dashes are everywhere."""
_SAMPLES = 40
"""Of a file of data, evenly spread."""
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)
_IMAGES = Path(__file__).parents[3] / "sandbox_images"


def hashed(needle: bytes) -> int:
    """As the attack calculates it."""
    found = 0
    for word, weight in zip(struct.unpack("<4Q", needle), WEIGHTS, strict=True):
        mixed = word * weight % (1 << 64)
        found += (mixed ^ mixed >> 32) * weight
    return found % (1 << 64)


def hidden_needles(task: Task, store: SplitStore, sandbox: DockerSandbox, run_id: str) -> dict[int, str]:
    """Hashes of what neither a program nor an analysis may get, and where each is from.

    That is every line of the evaluator's code, and samples of all generated data but the public ones: as text, and as
    arrays of the numbers that it says.

    Args:
        task: With its public data at hand.
        store: Has or makes the data of its splits.
        sandbox: Makes them.
        run_id: Labels the containers.
    """
    shown = b"".join([_lying_about(), task.description.encode(), *task.initial.values(), *task.public.values()])
    found = {}
    for file, content in task.evaluator.items():
        lines = [line.strip() for line in content.splitlines()]
        code = [line[:SIZE] for line in lines if not line.startswith((b"from ", b"import "))]
        found |= dict.fromkeys(_kept(code, shown), f"code {file}")
    for split in (name for name, spec in task.spec.splits.items() if isinstance(spec, GeneratedSplit)):
        for file, content in store.load(sandbox, task, split, run_id=run_id).files.items():
            if content not in task.public.values():
                found |= dict.fromkeys(_kept(_samples(content), shown), f"data {split}/{file}")
    return found


@cache
def _lying_about() -> bytes:
    """The images' own code and NumPy's: a line that is a common idiom stands there, too."""
    library = [path for path in Path(np.__file__).parent.rglob("*.py") if "tests" not in path.parts]
    return b"".join(path.read_bytes() for path in sorted([*_IMAGES.rglob("*.py"), *library]))


def public_needles(task: Task) -> set[int]:
    """Hashes of what an analysis may find; the control of every search."""
    return {needle for content in task.public.values() for needle in _kept(_samples(content), b"")}


def _kept(needles: Iterable[bytes], shown: bytes) -> Iterator[int]:
    return (
        hashed(one) for one in needles
        if len(one) == SIZE and len(set(one)) >= _FEWEST_DIFFERENT and one not in shown
    )  # fmt: skip


def _samples(content: bytes) -> Iterator[bytes]:
    yield from (content[at : at + SIZE] for at in _spread(len(content) - SIZE + 1))
    numbers = [float(text) for text in _NUMBER.findall(content)]
    count = SIZE // 8
    for at in _spread(len(numbers) - count + 1):
        part = numbers[at : at + count]
        if len(set(part)) == count:
            yield struct.pack("<4d", *part)
            if all(one.is_integer() and abs(one) < 1 << 63 for one in part):
                yield struct.pack("<4q", *map(int, part))


def _spread(places: int) -> Sequence[int]:
    return range(0, places, max(1, places // _SAMPLES))


def parameters(needles: Iterable[int], task: Task, functions: Sequence[str]) -> Mapping[str, object]:
    """Of the attack."""
    own = {path.stem for path in _IMAGES.rglob("*.py")}
    modules = {path.removesuffix(".py") for path in task.evaluator if path.endswith(".py") and "/" not in path}
    return {
        "NEEDLES": sorted(needles), "WEIGHTS": WEIGHTS, "MODULES": sorted(modules - own), "FUNCTIONS": list(functions),
    }  # fmt: skip
