"""The verify commands of a step: run by the runner itself in the workspace, remembered while nothing has changed."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from subagents_nb.domain.acceptance.verdict import how_it_went
from subagents_nb.domain.agents.environment import is_secret
from subagents_nb.domain.plans.acceptance import Verify, VerifyRun
from subagents_nb.domain.runs.events import Noticed, ToolEnded, ToolStarted
from subagents_nb.domain.values.base import sha256_text, stable_json
from subagents_nb.runner.engines.clean_text import Redactor, one_line
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.engines.tools.shell import run_command
from subagents_nb.runner.processes.threads import in_thread
from subagents_nb.runner.tracking.mentions import Mentions, mentions_of_command
from subagents_nb.runner.workspace.gitstate import GitState
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.files.opener import read_plain

OUTPUT_CHARS = 12_000
_KEPT_BYTES = 64 * 1024  # cut only after the secrets are out: half of one would not be found
_MEMO_BYTES = 256 * 1024


class Verifier:
    """Runs the verify commands of a step. What it remembers lies in the run's own directory."""

    def __init__(self, context: StepContext, run_dir: Path) -> None:
        self._context = context
        self._memos = run_dir / "verified"

    async def run_all(self, commands: tuple[Verify, ...]) -> tuple[VerifyRun, ...]:
        """Run them in their order, all of them: each says something of its own."""
        return tuple([await self._run_one(command) for command in commands])

    async def _run_one(self, asked: Verify) -> VerifyRun:
        context = self._context
        environ = {**context.tool_environ, **asked.env}
        environment = {**context.environ, **environ}
        hidden = Redactor(environment, [name for name, value in environment.items() if is_secret(name, value)])
        memo = await self._memo(asked, environ)
        if memo is not None and (known := _remembered(memo)) is not None:
            run = known.model_copy(update={"id": asked.id, "memoised": True})
            await in_thread(context.reads.asked.note_git)  # which it was remembered by, in place of what it would read
            context.report(Noticed("verified-before", f"{run.id}: {how_it_went(run)}, and nothing has changed since"))
            return run
        # Shown like a tool, so that a person sees what a step that has answered is still waiting for.
        call_id = f"verify-{asked.id}-{secrets.token_hex(3)}"
        context.report(ToolStarted(call_id, "verify", one_line(hidden(asked.command), 160)))
        began, ok = time.monotonic(), False
        try:
            run = await self._run(asked, environ, hidden)
            ok = run.passed
        finally:
            context.report(ToolEnded(call_id, ok=ok, seconds=time.monotonic() - began))
        if memo is not None and run.exit_code is not None:
            _write_memo(memo, run)
        return run

    async def _run(self, asked: Verify, environ: Mapping[str, str], hidden: Redactor) -> VerifyRun:
        shown = one_line(hidden(asked.command), 1000)
        run = VerifyRun(id=asked.id, command=shown, passed=False, allow_failure=asked.allow_failure)
        began = time.monotonic()
        folder = (self._context.cwd / (asked.cwd or ".")).resolve()
        if not folder.is_relative_to(self._context.cwd.resolve()):
            return run.model_copy(update={"output": "not run: its directory lies outside the workspace"})
        try:
            async with self._context.reads.asked.by(_mentions(asked), self._context.tool_environ):
                end = await run_command(
                    asked.command,
                    cwd=folder,
                    environ=environ,
                    seconds=asked.timeout_s,
                    limit=_KEPT_BYTES,
                    sandbox=self._context.sandbox,
                )
        except OSError as error:
            why = error.strerror or type(error).__name__
            return run.model_copy(update={"output": f"not run: it could not be started ({why})"})
        output = _cut(hidden(end.output))
        if end.code is None:
            output = f"{output.rstrip()}\n[ended after {asked.timeout_s:g} s, its time limit]".lstrip("\n")
        return run.model_copy(
            update={
                "passed": end.code == 0,
                "exit_code": end.code,
                "seconds": round(time.monotonic() - began, 3),
                "output": output,
            }
        )

    async def _memo(self, asked: Verify, environ: Mapping[str, str]) -> Path | None:
        """Return where the end of this command on these very files would be remembered; None where git can't tell."""
        with self._context.reads.watch.asking_git():
            state = await GitState(self._context.cwd).fingerprint()
        if state is None:
            return None
        bound = {
            "command": asked.command,
            "cwd": str((self._context.cwd / (asked.cwd or ".")).resolve()),
            "env": sha256_text(stable_json(dict(environ))),
            "timeout_s": asked.timeout_s,
            "allow_failure": asked.allow_failure,
            "state": state,
        }
        return self._memos / f"{sha256_text(stable_json(bound))}.json"


def _mentions(asked: Verify) -> Mentions:
    """Return what its command names of the workspace and of the environment that is not its own."""
    found = mentions_of_command(asked.command)
    variables = tuple(name for name in found.variables if name not in asked.env)
    return found._replace(files=found.files if asked.cwd is None else (), variables=variables)


def _cut(text: str) -> str:
    if len(text) <= OUTPUT_CHARS:
        return text
    half = (OUTPUT_CHARS - 60) // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def _remembered(memo: Path) -> VerifyRun | None:
    try:
        return VerifyRun.model_validate_json(read_plain(memo, _MEMO_BYTES))
    except (OSError, ValidationError):
        return None


def _write_memo(memo: Path, run: VerifyRun) -> None:
    """Keep how a command went. A memo that can't be kept costs the time of running it again, nothing else."""
    with contextlib.suppress(OSError):
        memo.parent.mkdir(mode=0o700, exist_ok=True)
        DISK.replace(memo, run.model_dump_json().encode("utf-8", "replace"), durable=False)
