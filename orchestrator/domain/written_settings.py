"""Settings as people write them: no unknown keys, and no value that counts as one of another kind."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo, field_validator


def _no_truth(value: object) -> object:
    if isinstance(value, bool):
        msg = "must be a number, not true or false"
        raise ValueError(msg)  # noqa: TRY004 - only a ValueError becomes a ValidationError
    return value


Number = Annotated[float, BeforeValidator(_no_truth)]
"""A number inside of a mapping or list, where the check of whole fields does not reach."""


class WrittenSettings(BaseModel):
    """Frozen; Python and pydantic take `true` and `1.0` for 1, and whoever wrote that meant something else."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _is_of_its_kind(cls, value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - as it was written
        kind = cls.model_fields[info.field_name or ""].annotation
        if get_origin(kind) is Literal and type(value) not in {type(choice) for choice in get_args(kind)}:
            msg = f"must be {' or '.join(repr(choice) for choice in get_args(kind))}"
            raise ValueError(msg)
        return _no_truth(value) if {int, float} & {kind, *get_args(kind)} else value
