"""The magics that bring runs elsewhere: to a tracker, or into a notebook of their own."""

from __future__ import annotations

import re
from typing import Any

from IPython.core.magic import line_magic, magics_class, no_var_expand

from subagents_nb.notebook.cells import CellMagics, explain, number
from subagents_nb.notebook.parsers import PARSERS

_UNFIT = re.compile(r"[^\w.-]+", re.ASCII)


@magics_class
class ExportMagics(CellMagics):
    """Bring ended runs elsewhere."""

    @no_var_expand
    @line_magic
    def subagent_export(self, line: str) -> Any:
        options = self._read("subagent_export", line)
        if options is None:
            return None
        from subagents_nb.exporters import export

        parser = PARSERS["subagent_export"]()
        if options.to is None:
            parser.error("say where to: --to mlflow, trackio, inspect or otel")
        chosen: dict[str, Any] = {"prompts": True} if options.prompts else {}
        for pair in options.set:
            name, equals, value = pair.partition("=")
            if not name or not equals:
                parser.error(f"--set {pair} sets nothing; write --set NAME=VALUE")
            chosen[name] = value
        return export(self._all_meant(options.run), to=options.to, **chosen)

    @no_var_expand
    @line_magic
    def subagent_transcript(self, line: str) -> Any:
        options = self._read("subagent_transcript", line)
        if options is None:
            return None
        from subagents_nb.notebook.receipts import Said

        step = number(PARSERS["subagent_transcript"](), "--step", options.step, least=0)
        run = self._run(options.run)
        part = "transcript" if step is None else f"step-{step}"
        name = options.output or f"{_UNFIT.sub('-', run.name).strip('.-') or 'run'}-{part}.ipynb"
        run.transcript(step, to=name)
        return Said.about(run.name, "written", name)


explain(ExportMagics)
