"""Twenty secrets in the environment and in the task: none is in a file, a command line, an output or a tool's reach.

A model that comes by one all the same, and says it, is not repeated.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crash.lives import settings
from support import processes_of, script, until

from subagents_nb import Run, launch
from subagents_nb.domain.runs.states import RunState
from subagents_nb.store import StoreHome

Case = Callable[..., None]
VARIABLES = [
    "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "GITHUB_TOKEN", "HF_TOKEN",
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "DB_PASSWORD", "PGPASSWORD", "SENTRY_DSN", "MY_SECRET", "API_KEY",
    "NPM_AUTH", "SESSION_COOKIE", "PRIVATE_KEY", "TOLD_KEY",
]  # fmt: skip
WORDS = 3


@contextlib.contextmanager
def every_command_line() -> Iterator[set[bytes]]:
    """Gather the command lines of all processes there are, many times a second."""
    lines: set[bytes] = set()
    over = threading.Event()

    def sample() -> None:
        while not over.wait(0.02):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    lines.add(path.read_bytes())

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield lines
    finally:
        over.set()
        sampler.join()


@pytest.mark.row(26, cases=len(VARIABLES) + WORDS)
@pytest.mark.timeout(180)
@pytest.mark.parametrize("mode", ["warm", "cold"])
def test_no_canary_is_seen_anywhere(
    store_home: StoreHome, told: str, mode: str, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    endpoint = (Path.home() / ".subagents/settings.toml").read_text().partition("[endpoints")[2]
    settings(f'[endpoints{endpoint}key_env = "TOLD_KEY"\n', live=8)
    secrets = {name: f"canary-{name.lower()}-{os.urandom(8).hex()}" for name in VARIABLES}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HARMLESS", "seen by tools")
    monkeypatch.setenv("SUBAGENTS_NB_SPAWN", mode)
    words = [f"taskword{os.urandom(8).hex()}" for _ in range(WORDS)]
    with every_command_line() as lines:
        run = launch(task=f"RUN: env; sleep 0.3; cat /proc/$PPID/cmdline\n{' '.join(words)}", model=told)
        assert run.wait(60)
        failed = launch(task=f"fail {words[0]}", model="scripted:fail")
        assert failed.wait(60)
    assert run.state is RunState.COMPLETE, run.error
    assert "HARMLESS=seen by tools" in run.text, "the tool did not run, so nothing was tried"
    until(lambda: not processes_of(store_home), 10, what="the last word of whoever watched")
    expect_nowhere(secrets, words, run, lines)
    expect_in_no_file(secrets, run)
    expect_not_shown([*secrets.values(), *words], run, failed)
    told_on = [*say_them(secrets, told), run]
    until(lambda: not processes_of(store_home), 10, what="the last word of whoever watched")
    expect_in_no_file(secrets, run, but=("session.json",))  # what a model was told it has to know when it goes on
    expect_not_shown(list(secrets.values()), *told_on)
    case(len(secrets) + len(words))


def say_them(secrets: dict[str, str], told: str) -> list[Run]:
    """Let models say the secrets in every way they have: cut in two, to tools and to the person, and at the end."""
    Path(".env").write_text(secrets["MY_SECRET"])
    halves = [(value[: len(value) // 2], value[len(value) // 2 :]) for value in secrets.values()]
    pieces = [{verb: piece} for pair in halves for verb in ("think", "text") for piece in (*pair, " ")]
    calls = [{"tool": "bash", "args": {"command": f"curl {v}"}, "result": f"got {v}"} for v in secrets.values()]
    refused = [{"tool": "bash", "args": {"command": "x" * 150 + v}, "refused": f"not {v}"} for v in secrets.values()]
    asked = " ".join(secrets.values())
    script("says", {"ask": f"Is it one of {asked}?", "choices": [asked]}, *pieces, *calls, *refused, {"text": "said"})
    script("fails", {"text": asked[:40]}, {"fail": {"message": f"bad key {asked}"}})
    runs = [launch(task="RUN: cat .env", model=told)]
    runs += [launch(task="say it", model=f"scripted:{name}") for name in ("says", "fails")]
    until(lambda: runs[1].questions, 30, what="the question")
    assert "Is it one of [redacted]" in runs[1].status.questions[0].text
    expect_not_shown(list(secrets.values()), *runs)
    runs[1].answer("yes")
    for run in runs:
        assert run.wait(60)
    assert runs[0].text == "[redacted]"
    assert runs[1].text.count("[redacted]") == len(secrets)
    assert "bad key [redacted]" in str(runs[2].error)
    return runs


def expect_not_shown(values: list[str], *runs: Run) -> None:
    for run in runs:
        shown = " ".join([repr(run), run.text, str(run.error), run.status.model_dump_json(), *map(str, run.events())])
        for value in values:
            assert value not in shown


def expect_nowhere(secrets: dict[str, str], words: list[str], run: Run, lines: set[bytes]) -> None:
    assert any(b"sleep" in line for line in lines) and any(b"subagents_nb" in line for line in lines)
    for value in [*secrets.values(), *words]:
        assert not [line for line in lines if value.encode() in line], "on a command line"
    files = [path for path in run.home.root.rglob("*") if path.is_file()]
    assert any("host.log" in path.name for path in files) or os.environ["SUBAGENTS_NB_SPAWN"] == "cold"
    for path, data in contents(run):
        if path.name not in ("plan.json", "session.json"):
            assert not [word for word in words if word.encode() in data], f"the task in {path}"


def expect_in_no_file(secrets: dict[str, str], run: Run, *, but: tuple[str, ...] = ()) -> None:
    for path, data in contents(run):
        if path.name not in but:
            assert not [name for name, value in secrets.items() if value.encode() in data], f"a secret in {path}"


def contents(run: Run) -> Iterator[tuple[Path, bytes]]:
    """Yield every file of the store with what is in it."""
    for path in run.home.root.rglob("*"):
        # The supervisor that stays is mid-write: what took the place of a file that is gone is another entry.
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                yield path, path.read_bytes()
