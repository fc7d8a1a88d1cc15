"""Which error becomes which reason, and what its message may hold."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import exceptions as pai
from pydantic_ai.messages import ModelResponse, TextPart

from subagents_nb.domain.runs.finish import Finish
from subagents_nb.runner.engines.clean_text import Redactor, one_line
from subagents_nb.runner.engines.native.failures import failure_of
from subagents_nb.runner.engines.native.mending import end_of, mended

WHERE = "api.example.org:443"


def http(category: Any, status: int, message: str = "no", **more: Any) -> pai.ModelHTTPError:
    body = {"error": {"message": message}}
    return pai.ModelHTTPError.for_category(category, status_code=status, model_name="m", body=body, **more)


ERRORS = [
    (http(pai.ModelAuthenticationError, 401), "auth", "OPENAI_API_KEY (HTTP 401)"),
    (http(pai.ModelAuthenticationError, 403, "not in your region"), "auth", "not in your region"),
    (http(pai.ModelRateLimitError, 429, retry_after=12.0), "rate-limit", "12 seconds"),
    (http(None, 429, "hold on"), "rate-limit", "hold on"),
    (http(pai.ModelQuotaExceededError, 402), "provider", "used up"),
    (http(pai.ModelContextWindowExceededError, 400), "context", "context"),
    (http(None, 400, "the request exceeds the available context size"), "context", "context"),
    (http(pai.ModelNotFoundError, 404, suggested_model_id="gpt-5"), "provider", "Did you mean 'gpt-5'?"),
    (http(pai.ModelServerError, 500), "provider", "HTTP 500"),
    (http(pai.ModelOverloadedError, 529), "provider", "HTTP 529"),
    (pai.ModelConnectionError("m", "x", phase="connect"), "connection", f"No connection to {WHERE}."),
    (pai.ModelConnectionError("m", "x", phase="read"), "connection", "broke off while"),
    (pai.ModelTimeoutError("m", "x"), "connection", "in time"),
    (pai.ModelRequestTimeout("m", 5.0), "connection", "in time"),
    (pai.IncompleteToolCall("x"), "truncated", "token limit"),
    (pai.ContentFilterError("x"), "filtered", "content filter"),
    (pai.UnexpectedModelBehavior("odd", "body"), "model", "odd"),
    (pai.UserError("no such thing"), "setup", "no such thing"),
]


@pytest.mark.parametrize(("error", "reason", "words"), ERRORS)
def test_each_error_has_its_reason(plan: Any, error: Exception, reason: str, words: str) -> None:
    failure = failure_of(error, plan(), WHERE, Redactor({}))

    assert failure is not None
    assert failure.reason == reason and words in failure.message
    assert len(failure.message) < 500 and failure.message.isprintable()


def test_an_error_that_only_we_can_have_caused_is_nobodys_failure(plan: Any) -> None:
    assert failure_of(KeyError("x"), plan(), WHERE, Redactor({})) is None


def raised_in(module: str, error: Exception) -> Exception:
    """Return an error that was raised by a module of this name, and so knows where."""
    space = {"__name__": module, "error": error}
    try:
        exec("raise error", space)
    except type(error) as caught:
        return caught
    raise AssertionError


def test_an_answer_on_which_its_reader_stumbles_is_the_provider_s_failure(plan: Any) -> None:
    failure = failure_of(raised_in("pydantic_ai.models.openai", RecursionError("x")), plan(), WHERE, Redactor({}))
    assert failure is not None
    assert (
        failure.reason == "provider"
        and failure.message == f"{WHERE} gave an answer that can't be read (RecursionError)."
    )
    assert failure_of(raised_in("subagents_nb.x", RecursionError("x")), plan(), WHERE, Redactor({})) is None
    assert failure_of(raised_in("pydantic_ai.models.openai", AssertionError("x")), plan(), WHERE, Redactor({})) is None


def test_a_model_s_name_that_is_none_is_a_text() -> None:
    assert mended(ModelResponse([TextPart("x")], model_name=5), ()).model_name == "5"  # type: ignore[arg-type]


def test_a_key_that_a_provider_repeats_is_not_repeated_by_us(plan: Any) -> None:
    environ = {"MY_TOKEN": "abcdefgh-12345", "HOME": "/home/abcdefgh", "SHORT_KEY": "abc"}
    error = http(pai.ModelServerError, 500, "token abcdefgh-12345 of /home/abcdefgh: abc")

    failure = failure_of(error, plan(), WHERE, Redactor(environ))

    assert failure is not None and "[redacted] of /home/abcdefgh: abc" in failure.message


def test_the_variable_that_the_plan_names_is_secret_whatever_its_name() -> None:
    assert Redactor({"LAB": "open-sesame"}, ("LAB",))("say open-sesame") == "say [redacted]"


def test_the_longer_of_two_secrets_is_replaced_whole() -> None:
    redact = Redactor({"A_KEY": "12345678", "B_KEY": "12345678-and-more"})

    assert redact("12345678-and-more") == "[redacted]"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n\tb\x1b[31mc", "a b [31mc"),
        ("safe\u202eevil\u2066\u200b", "safeevil"),
        ("x" * 400, "x" * 299 + "…"),
        ("", ""),
    ],
)
def test_foreign_text_is_one_plain_line(text: str, shown: str) -> None:
    assert one_line(text) == shown


@pytest.mark.parametrize(
    ("provider", "details", "finish"),
    [
        ("openai", {"finish_reason": "stop"}, Finish.STOP),
        ("openai", {"timestamp": "x"}, Finish.BROKEN),
        ("openai", {"finish_reason": "stop", "refusal": "no"}, Finish.REFUSED),
        ("anthropic", None, Finish.BROKEN),
        ("function", None, Finish.STOP),
        (None, None, Finish.STOP),
    ],
)
def test_an_answer_is_whole_only_when_the_provider_said_so(provider: Any, details: Any, finish: Finish) -> None:
    response = ModelResponse(parts=[TextPart("half")], provider_name=provider, provider_details=details)

    assert end_of(response, closed=False) is finish
