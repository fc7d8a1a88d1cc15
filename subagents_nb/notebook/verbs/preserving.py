"""The verbs about what runs leave behind: work in worktrees, transcripts, archives, the store, the embedded model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from subagents_nb.terminal import complain, hand_over, say

if TYPE_CHECKING:
    from pathlib import Path

    from subagents_nb.domain.kept.retention import Collection
    from subagents_nb.exporters.sending import Export
    from subagents_nb.notebook.verbs.call import Call

_UNFIT = re.compile(r"[^\w.-]+", re.ASCII)


def diff(call: Call) -> str:
    """Return what a run changed, as a patch."""
    return call.run.diff(call.options.step)


def show_diff(call: Call, patch: str) -> Any:
    """Show a patch by its files."""
    from subagents_nb.notebook.cards.diffs import ShownDiff

    return ShownDiff(call.run.name, patch, call.options.step, call.run.id)


def print_diff(_: Call, patch: str) -> None:
    """Print a patch as git takes it; on a screen without what could steer the terminal."""
    hand_over(patch)
    if not patch:
        complain("No changes.")


def apply(call: Call) -> list[str]:
    """Put the changes of a run into the repository it was launched from, or only try it; return their files."""
    return call.run.apply(call.options.step, check=call.options.check)


def show_applied(call: Call, paths: list[str]) -> Any:
    """Say which files were changed."""
    from subagents_nb.notebook.cards.receipts import Receipt

    shown = ", ".join(paths[:5])
    files = f"{shown} and {len(paths) - 5} more" if len(paths) > 5 else shown
    return Receipt.about(call.run.name, "fits" if call.options.check else "applied", files)


def print_applied(call: Call, paths: list[str]) -> None:
    """Print which files were changed."""
    from subagents_nb.domain.values.words import one_line

    files = f"{len(paths)} file{'' if len(paths) == 1 else 's'}"
    done = "can be" if call.options.check else "were" if len(paths) != 1 else "was"
    say("\n  ".join([f"{call.run.name}: {files} {done} changed:", *(one_line(path, 400) for path in paths)]))


def discard(call: Call) -> list[str]:
    """Remove worktrees that were kept; return where they were."""
    return call.run.discard(call.options.step)


def show_discarded(call: Call, removed: list[str]) -> Any:
    """Say how many there were."""
    from subagents_nb.notebook.cards.receipts import Receipt

    count = len(removed)
    what = "the worktree and its branch" if count == 1 else f"{count} worktrees and their branches"
    return Receipt.about(call.run.name, "discarded", what)


def print_discarded(_: Call, removed: list[str]) -> None:
    """Print where they were."""
    for path in removed:
        say(f"removed {path}")


def export(call: Call) -> Export:
    """Send runs to another tool."""
    from subagents_nb import exporters

    options = call.options
    if options.to is None:
        call.refuse(f"say where to: --to NAME, which is one of {', '.join(exporters.exporters())}")
    how: dict[str, Any] = {"prompts": True} if options.prompts else {}
    for pair in options.set:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            call.refuse(f"--set {pair} sets nothing; write --set NAME=VALUE")
        how[name] = value
    return exporters.export(call.meant(), to=options.to, **how)


def transcript(call: Call) -> Path:
    """Write what was said as a notebook; return where it is."""
    step, run = call.options.step, call.run
    part = "transcript" if step is None else f"step-{step}"
    beside = call.file_path(f"{_UNFIT.sub('-', run.name).strip('.-') or 'run'}-{part}.ipynb")
    return run.transcript(step, to=call.options.output or beside)


def show_written(call: Call, path: Path) -> Any:
    """Say where it is."""
    from subagents_nb.notebook.cards.receipts import Receipt

    return Receipt.about(call.run.name, "written", call.options.output or path.name)


def archive(call: Call) -> str:
    """Write runs into a zip file."""
    from subagents_nb.launching.archive import export_runs

    options = call.options
    written = export_runs(options.run, options.output, project=options.project)
    return f"{options.output}: {len(written)} run{'' if len(written) == 1 else 's'}, with tasks, prompts and answers"


def take_in(call: Call) -> str:
    """Take the runs of such a file in."""
    from subagents_nb.launching.archive import import_runs

    taken, known = import_runs(call.options.file, project=call.options.project)
    lines = [*(f"taken in: {run_id}" for run_id in taken), *(f"here already: {run_id}" for run_id in known)]
    return "\n".join(lines) or "There are no runs in it."


def gc(call: Call) -> Collection:
    """Delete old runs."""
    from subagents_nb.launching.stored import cleaning as retention

    options = call.options
    return retention.gc(dry_run=options.dry_run, days=options.days, now=options.now)


def restore(call: Call) -> str:
    """Bring a run back from the trash."""
    from subagents_nb.launching.stored import cleaning as retention

    run = retention.restore(call.options.run)
    return f"{run.name} is back: {run.id}"


def local_model(call: Call) -> str:
    """Install or remove the embedded model."""
    from subagents_nb import local_model as model
    from subagents_nb.store import open_home

    if call.options.action == "install":
        return f"The embedded model is ready: {model.install(lambda line: say(line, flush=True))}"
    model.stop(open_home(create=False).root)
    return "\n".join(f"removed {path}" for path in model.uninstall()) or "There was nothing to remove."
