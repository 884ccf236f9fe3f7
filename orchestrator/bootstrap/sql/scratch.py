"""Where the steps of a single question lie until it is answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestrator.errors import PrerequisiteError


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for the journal of one question, which is gone afterwards.

    Raises:
        PrerequisiteError: It cannot be made, or what is written there, cannot.
    """
    way_out = "free disk space there, or name another folder with $TMPDIR"
    try:
        folder = TemporaryDirectory(prefix="evolvarium-ask-")
    except OSError as error:
        msg = f"cannot make a temporary folder for the question: {error.strerror} ({error.filename}); {way_out}"
        raise PrerequisiteError(msg) from error
    with folder as name:
        try:
            yield Path(name)
        except PrerequisiteError as error:
            if name not in str(error):
                raise
            msg = f"cannot keep the steps of the question in {name}: {way_out}"  # there is no run to be resumed
            raise PrerequisiteError(msg) from error
