"""Try a request again that a provider refused before it began to answer, as late as the provider asks.

The SDKs retry as well, each in its own way and without a word, while a run's deadline goes on; theirs is turned off.
"""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass

from pydantic_ai import exceptions as pai
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext

from subagents_nb.domain.runs.events import Noticed
from subagents_nb.runner.engines.tools.tools import ToolContext

_BUSY = frozenset({429, 503, 529})
_SLIPS = frozenset({408, 409, 500, 502, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a request is made in all, and how long the pauses between are."""

    tries: int = 5  # when the provider is busy
    slip_tries: int = 3  # when it failed, or could not be reached
    first_s: float = 1.0  # doubled with each further try
    longest_s: float = 60.0
    longest_asked_s: float = 600.0  # who asks for more is not waited for


NO_RETRIES = RetryPolicy(tries=1, slip_tries=1)


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait before the next try, and how it is told."""

    seconds: float
    notice: Noticed


@dataclass
class Patient(AbstractCapability[ToolContext]):
    """Wait and ask again. pydantic-ai calls this only while nothing of a response has arrived."""

    patience: RetryPolicy
    seed: str  # runs that were refused together come back apart

    async def on_model_request_error(
        self, ctx: RunContext[ToolContext], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Pause before another try, or let the error through."""
        pause = pause_after(error, request_context.attempt, self.patience, self.seed)
        if pause is None:
            raise error
        context = ctx.deps.context
        context.report(pause.notice)
        with context.waiting():
            await asyncio.sleep(pause.seconds)
        raise pai.RetryModelRequest


def pause_after(error: Exception, attempt: int, patience: RetryPolicy, seed: str) -> Pause | None:
    """Decide what follows the failure of a request's `attempt`, counted from 1; None: no other try."""
    if not isinstance(error, pai.ModelAPIError) or isinstance(error, pai.ModelQuotaExceededError):
        return None  # used-up credit does not come back by waiting
    status = getattr(error, "status_code", None)
    share = zlib.crc32(f"{seed}:{attempt}".encode()) / 2**32
    busy = status in _BUSY or isinstance(error, (pai.ModelRateLimitError, pai.ModelOverloadedError))
    if attempt >= (patience.tries if busy else patience.slip_tries):
        return None
    if error.retry_after is not None and (busy or status in _SLIPS):
        return _requested_wait(error.retry_after, patience, share)
    backoff = min(patience.longest_s, patience.first_s * 2 ** (attempt - 1)) * (0.75 + share / 4)
    if busy:
        return Pause(
            backoff, Noticed("rate-limited", f"The provider is busy; it is asked again in {_seconds_text(backoff)}.")
        )
    if status in _SLIPS or _is_slip_of_the_line(error):
        what = f"answered with an error (HTTP {status})" if status else "could not be reached"
        return Pause(
            backoff, Noticed("retrying", f"The provider {what}; it is asked again in {_seconds_text(backoff)}.")
        )
    return None


def _requested_wait(seconds: float, patience: RetryPolicy, share: float) -> Pause | None:
    if seconds > patience.longest_asked_s:
        return None
    # Never sooner than asked; a little later, so that not all come back in one moment.
    wait = seconds + min(1.0, seconds / 10) * share
    return Pause(wait, Noticed("rate-limited", f"The provider asks to wait {_seconds_text(seconds)}."))


def _is_slip_of_the_line(error: pai.ModelAPIError) -> bool:
    if isinstance(error, pai.ModelTimeoutError):
        return error.phase in ("connect", "pool")  # who waited ten minutes for an answer need not do so again
    return isinstance(error, pai.ModelConnectionError)


def _seconds_text(seconds: float) -> str:
    return f"{seconds:.3g} s"
