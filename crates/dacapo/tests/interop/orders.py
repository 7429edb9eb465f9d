"""The values that both sides send each other, and what Python sees of a failure."""

from dataclasses import dataclass
from typing import Any

from temporalio.exceptions import ApplicationError, FailureError


@dataclass
class Order:
    item: str
    amount: int
    notes: list[str]


@dataclass
class Receipt:
    order: Order
    total: float


def told(error: BaseException | None) -> dict[str, Any]:
    """What a failure says, and the failures that caused it."""
    said: dict[str, Any] = {"class": type(error).__name__}
    if isinstance(error, FailureError):
        said["message"] = error.message
    if isinstance(error, ApplicationError):
        said |= {"type": error.type, "details": list(error.details), "non_retryable": error.non_retryable}
    cause = getattr(error, "cause", None)
    return said | {"cause": told(cause)} if cause else said
