"""What went wrong with a model, in words for a person and a reason for a program."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from pydantic_ai import exceptions as pai

from subagents_nb.domain.plans.plan import StepPlan
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.domain.runs.finish import HIT_LIMIT
from subagents_nb.runner.engines.clean_text import one_line

NO_ANSWER = "The model ended without an answer."

# What reading of an answer can end with that is none: pydantic-ai takes most of it as it comes.
_READERS = "pydantic_ai.models."
_IN_PROCESS = frozenset({f"{_READERS}function", f"{_READERS}test"})  # whose errors are those of a program
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_CONTEXT_WORDS = ("context length", "context size", "context window", "maximum context", "too many tokens")


def failure_of(error: Exception, step: StepPlan, where: str, redact: Callable[[str], str]) -> StepFailed | None:
    """Return the step's failure for an error of pydantic-ai; None for an error that only we can have caused."""
    if isinstance(error, StepFailed):
        return error
    if isinstance(error, pai.ModelAPIError):
        return _of_request(error, step, where, redact)
    if isinstance(error, pai.OutputTokenLimitExceeded):
        return StepFailed("truncated", HIT_LIMIT)
    if isinstance(error, pai.ContentFilterError):
        return StepFailed("filtered", "The provider's content filter stopped the answer.")
    if isinstance(error, pai.UnexpectedModelBehavior):
        message = one_line(redact(error.message))
        return StepFailed("model", f"The model {step.model.label} behaved in a way that can't be used: {message}")
    if isinstance(error, pai.UserError):
        message = one_line(redact(str(error)))
        return StepFailed("setup", f"The model {step.model.label} can't carry out this step: {message}")
    if isinstance(error, _UNREADABLE) and _came_of_an_answer(error):
        return StepFailed("provider", f"{where} gave an answer that can't be read ({type(error).__name__}).")
    return None


def _came_of_an_answer(error: Exception) -> bool:
    """Say whether an error arose where pydantic-ai reads an answer, and not in code of ours that is told of it."""
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = bool(modules) and modules[-1].partition(".")[0] == __name__.partition(".")[0]
    return not ours and _IN_PROCESS.isdisjoint(modules) and any(name.startswith(_READERS) for name in modules)


def _of_request(error: pai.ModelAPIError, step: StepPlan, where: str, redact: Callable[[str], str]) -> StepFailed:
    label, status = step.model.label, getattr(error, "status_code", None)
    words = provider_words(error, redact)
    tail = f": {words}" if words else "."
    if isinstance(error, pai.ModelAuthenticationError):
        return StepFailed("auth", _auth_words(step, where, status, tail))
    if isinstance(error, pai.ModelContextWindowExceededError) or _is_about_context(status, words):
        return StepFailed("context", f"The task and what was read do not fit into the context of {label}{tail}")
    if isinstance(error, pai.ModelQuotaExceededError):
        return StepFailed("provider", f"The account's quota or credit at {where} is used up{tail}")
    if isinstance(error, pai.ModelRateLimitError) or status == 429:
        wait = f" It asks to wait {error.retry_after:g} seconds." if error.retry_after else ""
        return StepFailed("rate-limit", f"{where} refused the request: too many requests{tail}{wait}")
    if isinstance(error, (pai.ModelTimeoutError, pai.ModelRequestTimeout)):
        return StepFailed("connection", f"{where} did not answer in time.")
    if isinstance(error, pai.ModelConnectionError):
        return StepFailed("connection", _connection_words(error, where))
    number = f" (HTTP {status})" if status else ""
    hint = getattr(error, "suggested_model_id", None)
    more = f" Did you mean {hint!r}?" if hint else ""
    return StepFailed("provider", f"{where} answered with an error{number}{tail}{more}")


def provider_words(error: pai.ModelAPIError, redact: Callable[[str], str]) -> str:
    """Return the provider's own message, fit to be shown: one line, no control characters, no key of ours."""
    return one_line(redact(_message_in(error.body)))


def _message_in(body: Any) -> str:
    if isinstance(body, str):
        return body
    if isinstance(body, dict):
        inner = body.get("error")
        if isinstance(inner, (dict, str)):
            return _message_in(inner)
        for key in ("message", "detail", "msg"):
            if isinstance(body.get(key), str):
                return str(body[key])
    return ""


def _auth_words(step: StepPlan, where: str, status: int | None, tail: str) -> str:
    names = " or ".join(step.model.key_env)
    number = f" (HTTP {status})" if status else ""
    if not names:
        return f"{where} wants a key{number}, and the endpoint names no variable for one: set its key_env."
    # A 403 may be about the model or the region; at a 401 the provider's words only repeat the key.
    words = tail if status == 403 else "."
    return f"{where} did not accept the key in {names}{number}{words}"


def _connection_words(error: pai.ModelConnectionError, where: str) -> str:
    if error.in_stream or error.phase == "read":
        return f"The connection to {where} broke off while the model was answering."
    return f"No connection to {where}."


def _is_about_context(status: int | None, said: str) -> bool:
    return status in (400, 413) and any(word in said.lower() for word in _CONTEXT_WORDS)
