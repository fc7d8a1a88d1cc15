"""The magics about runs that exist: look, wait, stop, steer, answer, change limits, take over. They print nothing."""

from __future__ import annotations

from typing import Any

from IPython.core.magic import line_cell_magic, line_magic, magics_class, no_var_expand

from subagents_nb.notebook.cells import ASKED_BY, CellMagics, amount, explain, number
from subagents_nb.notebook.parsers import PARSERS

_EFFECT_S = 5.0


@magics_class
class RunMagics(CellMagics):
    """Look after the runs of a notebook."""

    @no_var_expand
    @line_magic
    def subagent_status(self, line: str) -> Any:
        options = self._read("subagent_status", line)
        if options is None:
            return None
        from subagents_nb import launching
        from subagents_nb.launching.whence import notebook_here

        if options.run is not None:
            return self._run(options.run)
        limit = number(PARSERS["subagent_status"](), "-n", options.number or "20", least=0)
        state = "asking" if options.asking else options.state
        notebook = notebook_here() if options.here else options.notebook
        if options.here and notebook is None:
            PARSERS["subagent_status"]().error("--here: this kernel does not know its notebook; name it by --notebook")
        return launching.runs(state=state, limit=limit, notebook=notebook, cell=options.cell, phase=options.phase)

    @no_var_expand
    @line_magic
    def subagent_wait(self, line: str) -> Any:
        options = self._read("subagent_wait", line)
        if options is None:
            return None
        from subagents_nb import launching
        from subagents_nb.notebook.notices import NOTICES

        waited = launching.wait_for([self._run(named).id for named in options.run], timeout=options.timeout)
        for snapshot in waited.snapshots:
            if snapshot.ended:
                NOTICES.asked_for(snapshot.run_id)
        return waited

    @no_var_expand
    @line_magic
    def subagent_stop(self, line: str) -> Any:
        options = self._read("subagent_stop", line)
        if options is None:
            return None
        step = number(PARSERS["subagent_stop"](), "--step", options.step, least=0)
        from subagents_nb import launching
        from subagents_nb.launching.selecting import runs_of

        if bool(options.run) == options.all:
            PARSERS["subagent_stop"]().error("say which run, or --all for all that are live")
        chosen = runs_of(self._all_meant(options.run)) if options.run else list(launching.runs(state="live"))
        if step is not None and len(chosen) != 1:
            PARSERS["subagent_stop"]().error("--step is of one run")
        asked = [run for run in chosen if run.stop(options.reason or "", step=step, asked_by=ASKED_BY)]
        if step is not None:
            return self._said(chosen[0], "stop requested", f"step {step}; the others go on")
        if len(chosen) == 1:
            (run,) = chosen
            return self._settled(run) if asked else self._said(run, f"{run.state} already", "there was nothing to stop")
        for run in asked:
            self._settled(run)
        return (
            launching.Runs(chosen[0].home, [run.status for run in chosen]) if chosen else launching.runs(state="live")
        )

    @no_var_expand
    @line_magic
    def subagent_interrupt(self, line: str) -> Any:
        options = self._read("subagent_interrupt", line)
        if options is None:
            return None
        run = self._run(options.run)
        run.interrupt(options.reason or "", asked_by=ASKED_BY)
        return self._settled(run)

    @no_var_expand
    @line_cell_magic
    def subagent_steer(self, line: str, cell: str | None = None) -> Any:
        options, text = self._read_text("subagent_steer", line, cell)
        if options is None:
            return None
        from subagents_nb.notebook.receipts import steered

        step = number(PARSERS["subagent_steer"](), "--step", options.step, least=0)
        run = self._run(options.run)
        receipt = run.steer(text, follow_up=options.follow_up, step=step, asked_by=ASKED_BY)
        return steered(run.status, receipt, follow_up=options.follow_up)

    @no_var_expand
    @line_cell_magic
    def subagent_answer(self, line: str, cell: str | None = None) -> Any:
        options, text = self._read_text("subagent_answer", line, cell)
        if options is None:
            return None
        run = self._run(options.run)
        return self._said(run, "answered", run.answer(text, question=options.question, asked_by=ASKED_BY).text)

    @no_var_expand
    @line_cell_magic
    def subagent_append(self, line: str, cell: str | None = None) -> Any:
        options = self._read("subagent_append", line)
        if options is None:
            return None
        if cell is None:
            PARSERS["subagent_append"]().error("there are no items; write them in YAML in a %%subagent_append cell")
        from subagents_nb.errors import LaunchRefused
        from subagents_nb.launching.appending import AppendRefused
        from subagents_nb.notebook.chain_cell import parse

        run = self._run(options.run)
        shell: Any = self.shell
        defaults = shell.magics_manager.registry.get("SubagentMagics")  # what an item leaves open is as at a launch
        try:
            template = options.template if options.template is not None else getattr(defaults, "template", None)
            agent = getattr(defaults, "default_agent", None) or None
            parsed = parse(cell, self._variables(), agent=agent, fill=self._filler(template))
            answer = run.append(parsed.chain, asked_by=ASKED_BY)
        except AppendRefused as refused:
            raise AppendRefused(parsed.located(refused.reasons)) from refused
        except LaunchRefused as refused:
            raise AppendRefused(refused.reasons) from refused
        count = len(parsed.chain.items)
        what = f"{count} item{'' if count == 1 else 's'}"
        if answer is None:
            return self._said(run, "queued", f"{what}; the run is busy and takes them in later")
        return self._said(run, "appended" if answer.outcome == "accepted" else answer.outcome, answer.text or what)

    @no_var_expand
    @line_magic
    def subagent_retune(self, line: str) -> Any:
        options = self._read("subagent_retune", line)
        if options is None:
            return None
        parser = PARSERS["subagent_retune"]()
        limits = {
            "timeout": options.timeout,
            "max_requests": number(parser, "--max-requests", options.max_requests),
            "tool_timeout": options.tool_timeout,
            "concurrency": number(parser, "--concurrency", options.concurrency),
            "tokens": amount(parser, "--tokens", options.tokens, "tokens"),
            "cost_usd": amount(parser, "--cost", options.cost, "usd"),
        }
        if not any(limits.values()):
            parser.error(
                "say what to change: --timeout, --max-requests, --tool-timeout, --concurrency, --tokens, --cost"
            )
        run = self._run(options.run)
        from subagents_nb.notebook.receipts import retuned

        answer = run.retune(**limits, asked_by=ASKED_BY)
        changes = ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in limits.items() if value)
        return retuned(run.name, answer, changes)

    @no_var_expand
    @line_magic
    def subagent_drain(self, line: str) -> Any:
        options = self._read("subagent_drain", line)
        if options is None:
            return None
        run = self._run(options.run)
        from subagents_nb.notebook.receipts import drained

        answer = run.drain(asked_by=ASKED_BY)
        return drained(run.name, answer, began=not run.status.ended_in_queue)

    @no_var_expand
    @line_magic
    def subagent_diff(self, line: str) -> Any:
        options = self._read("subagent_diff", line)
        if options is None:
            return None
        from subagents_nb.notebook.diffs import ShownDiff

        step = number(PARSERS["subagent_diff"](), "--step", options.step, least=0)
        run = self._run(options.run)
        return ShownDiff(run.name, run.diff(step), step, run.id)

    @no_var_expand
    @line_magic
    def subagent_apply(self, line: str) -> Any:
        options = self._read("subagent_apply", line)
        if options is None:
            return None
        step = number(PARSERS["subagent_apply"](), "--step", options.step, least=0)
        run = self._run(options.run)
        return self._said(run, "fits" if options.check else "applied", _files(run.apply(step, check=options.check)))

    @no_var_expand
    @line_magic
    def subagent_discard(self, line: str) -> Any:
        options = self._read("subagent_discard", line)
        if options is None:
            return None
        step = number(PARSERS["subagent_discard"](), "--step", options.step, least=0)
        run = self._run(options.run)
        count = len(run.discard(step))
        what = "the worktree and its branch" if count == 1 else f"{count} worktrees and their branches"
        return self._said(run, "discarded", what)

    @no_var_expand
    @line_magic
    def subagent_agents(self, line: str) -> Any:
        if self._read("subagent_agents", line) is None:
            return None
        from subagents_nb import launching

        return launching.agents()

    @no_var_expand
    @line_magic
    def subagent_doctor(self, line: str) -> Any:
        if self._read("subagent_doctor", line) is None:
            return None
        from subagents_nb.launching.doctor import examine

        return examine()

    @staticmethod
    def _settled(run: Any) -> Any:
        """Wait a moment until what was asked for has happened, which need not be told again."""
        from subagents_nb.notebook.notices import NOTICES

        if run.wait(_EFFECT_S):
            NOTICES.asked_for(run.id)
        return run

    @staticmethod
    def _said(run: Any, outcome: str, text: str) -> Any:
        from subagents_nb.notebook.receipts import Said

        return Said.about(run.name, outcome, text)


def _files(paths: list[str]) -> str:
    shown = ", ".join(paths[:5])
    return f"{shown} and {len(paths) - 5} more" if len(paths) > 5 else shown


def _plain(value: Any) -> str:
    return f"{value:,.12g}" if isinstance(value, float) else str(value)


explain(RunMagics)
