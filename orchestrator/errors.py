"""Every exception we raise on purpose.

    EvolvariumError
    ├── InputError               wrong input from the user                 exit code 2
    │   ├── PolicyError          a policy that cannot be granted
    │   ├── TaskError            a task package that is not well formed
    │   └── RunStateError        a run that is missing, locked or of another kind
    ├── PrerequisiteError        engine, image, key or data is missing     exit code 3
    │   ├── EngineUnavailable    no Docker engine answers
    │   ├── ImageMissing         an image is not built, or differs from its lock
    │   ├── UnprovenLimit        a limit the policy relies on is not proved here
    │   └── AuditError           the audit log cannot be read, or nothing can be appended to it
    ├── BudgetExhausted          nothing more may be spent                 exit code 4
    ├── SandboxError             the sandbox failed, never the candidate   exit code 5
    │   ├── EngineTimeout        the engine did not answer before its deadline
    │   └── ProtocolError        trusted code in a container broke the protocol
    ├── EvaluatorError           trusted task code failed; the candidate stays unscored   exit code 5
    │   └── EvaluatorCutOff      it met a limit of its container
    ├── ModelError               a language model could not answer         exit code 5
    │   ├── ModelUnavailable     its provider serves us no more            exit code 7
    │   ├── LostReply            what may have been paid for did not arrive
    │   │   └── LostInOutage     and its provider serves nobody            exit code 7
    │   └── ContextTooLong       the conversation does not fit into the model's context
    ├── OutputError              a result cannot be written to stdout      exit code 6
    └── Cancelled                an operator's stop                        exit code 130
        └── CancelledUnpaid      while no call of a model was in flight

What a candidate does is data (`domain.outcomes`), never one of these; that an audit chain is broken is a finding of
`audit verify`, and no exception either. Both end a command with exit code 1. Foreign errors are translated once, at the
edge.
"""


class EvolvariumError(Exception):
    """Root of the tree; `exit_code` is what a command ends with."""

    exit_code = 5


class InputError(EvolvariumError):
    """Wrong input; the message names the thing, the value and the way out."""

    exit_code = 2


class PolicyError(InputError):
    """A policy file that is not well formed or asks for what cannot be granted."""


class TaskError(InputError):
    """A task package that is not well formed."""


class RunStateError(InputError):
    """A run that does not exist, is in use, or was started with other settings."""


class PrerequisiteError(EvolvariumError):
    """Something this machine must offer is missing, or the home cannot be written; the message holds the remedy."""

    exit_code = 3


class EngineUnavailable(PrerequisiteError):
    """No Docker engine answers. Nothing falls back to the host."""


class ImageMissing(PrerequisiteError):
    """An image is not built here, or its digest differs from the lock."""


class UnprovenLimit(PrerequisiteError):
    """A limit is not in force on this engine and runtime, and the policy does not accept that by name."""


class AuditError(PrerequisiteError):
    """The audit log cannot be read or written, or has no end to go on from; says nothing of whether it is intact."""


class BudgetExhausted(EvolvariumError):
    """The budget does not cover the next step; nothing was spent for it."""

    exit_code = 4


class SandboxError(EvolvariumError):
    """The sandbox failed. Never a score, never charged."""


class EngineTimeout(SandboxError):
    """The engine did not answer before its deadline."""


class ProtocolError(SandboxError):
    """Bytes that are not a well-formed frame, where well-formed frames are owed."""


class EvaluatorError(EvolvariumError):
    """Trusted task code failed; the candidate stays unscored."""


class EvaluatorCutOff(EvaluatorError):
    """Trusted task code met a limit of its container before it had a verdict."""

    def __init__(self, message: str, ending: str) -> None:
        """Say which limit it was.

        Args:
            message: For the operator.
            ending: Of the container, such as `timeout`.
        """
        super().__init__(message)
        self.ending = ending


class ModelError(EvolvariumError):
    """A language model could not answer, and nothing was spent; `LostReply` is the one of them that may have cost."""


class ModelUnavailable(ModelError):
    """Its provider does not serve us: an outage longer than we wait, or no access. What waits for it is paused."""

    exit_code = 7


class LostReply(ModelError):
    """The request reached the provider and no whole reply came back, so it may have been paid for; asking again is."""


class LostInOutage(LostReply, ModelUnavailable):
    """The last of several failures in a row of its provider: what waits for it is paused, and this reply is lost."""

    exit_code = 7


class ContextTooLong(ModelError):
    """The provider says that the conversation does not fit into the model's context."""


class OutputError(EvolvariumError):
    """What a command has to say cannot be written to stdout; says nothing of what it did."""

    exit_code = 6


class Cancelled(EvolvariumError):
    """An operator asked to stop."""

    exit_code = 130


class CancelledUnpaid(Cancelled):
    """An operator asked to stop while a model waited to be asked, be it once more; nothing was spent."""
