"""Where the data of splits come from."""

from __future__ import annotations

from pathlib import Path

from orchestrator.bootstrap.places import Places, writable_home
from orchestrator.errors import InputError
from orchestrator.evaluation.hidden import SplitStore
from orchestrator.evaluation.seeds import SeedSource


def split_store(places: Places, *, public_seed: bool, data: str | None) -> SplitStore:
    """The splits of this installation, or of the published seed.

    Args:
        places: Holds the home.
        public_seed: Generate from the published seed; otherwise from the installation's own, drawn at the first call.
        data: File or folder of those that come from files; None: there are none.

    Raises:
        InputError: `data` does not exist, or the home cannot be used.
    """
    if data is not None and not Path(data).exists():
        msg = f"there is no {data!r}; --or-library takes a file of instances, or the folder that holds it"
        raise InputError(msg)
    home = writable_home(places)
    seeds = SeedSource.public() if public_seed else SeedSource.installation(home)
    return SplitStore(home=home, seeds=seeds, data_roots=() if data is None else (Path(data),))
