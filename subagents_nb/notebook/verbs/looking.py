"""The verbs that look: at runs, at agents, at the store."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from subagents_nb.errors import RequestError
from subagents_nb.terminal import say

if TYPE_CHECKING:
    from subagents_nb.domain.agents.agent import AgentCatalog
    from subagents_nb.domain.runs.questions import Question
    from subagents_nb.experiments import Comparison
    from subagents_nb.experiments.comparison.run_diffs import Diff
    from subagents_nb.launching import Run, Runs
    from subagents_nb.launching.stored.doctor import Checkup
    from subagents_nb.launching.stored.project_trust import ProjectTrust
    from subagents_nb.notebook.verbs.call import Call


def status(call: Call) -> Run | Runs:
    """Return the run that is named, or the list."""
    return call.run if call.options.run is not None else list_runs(call)


def list_runs(call: Call) -> Runs:
    """Return the runs that fit."""
    from subagents_nb import launching

    return launching.runs(**_which(call))


def show_status(call: Call, found: Run | Runs) -> Run | Runs:
    """Return the run, or the list as a live board."""
    from subagents_nb import launching
    from subagents_nb.notebook.board.board_show import Board

    return found if isinstance(found, launching.Run) else Board(_which(call), found)


def run_board(call: Call, found: Runs) -> int:
    """Show the board in the terminal until it is left."""
    from subagents_nb.notebook.board.board_list import BoardList

    try:
        from subagents_nb.notebook.board.terminal_board import TerminalBoard
    except ImportError as error:
        raise RequestError('The board in a terminal needs Textual; run: pip install "subagents-nb[board]"') from error
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise RequestError("The board needs a terminal of its own; `subagents-nb list` prints the runs.")
    TerminalBoard(BoardList(_which(call)), found).run()
    return 0


def _which(call: Call) -> dict[str, Any]:
    """Return the arguments of `runs` that the options say."""
    from subagents_nb.launching.gathering.lineage import notebook_here

    options = call.options
    here, notebook = getattr(options, "here", False), options.notebook
    if here and (notebook := notebook_here()) is None:
        call.refuse("--here: this kernel does not know its notebook; name it by --notebook")
    state = "asking" if options.asking else options.state
    which = {"cell": options.cell, "phase": options.phase, "lane": options.lane, "workflow": options.workflow}
    return {"state": state, "limit": options.number, "notebook": notebook, **which}


def print_status(call: Call, found: Any) -> int:
    """Print a run in full, or the list."""
    from subagents_nb.blocks import to_text
    from subagents_nb.domain.kept.retention import size
    from subagents_nb.notebook.cards.card import card
    from subagents_nb.notebook.cards.view import attention_line
    from subagents_nb.store.runs.disk_usage import DISK_CAP_BYTES, disk_use

    if call.options.run is None:
        say(text_of(found))
        return 0
    snapshot, paths = found.status, found.home.run(found.id)
    say(to_text(card(snapshot, figures=True)))
    if wants_a_look := attention_line(snapshot):
        say(f"It may need a look: {wants_a_look}")
    if (budget := snapshot.usage_budget) is not None:
        say(f"It used {budget.words(snapshot.usage_of_all)}.")
    for question in found.questions:
        say(_whole(found, question))
    say(f"\n{found.id}  {paths.root}  {size(disk_use(paths))} of at most {size(DISK_CAP_BYTES)}")
    return 0 if snapshot.error is None else 1


def _whole(run: Run, question: Question) -> str:
    """Return a question as it is, however long, and what to type: nobody should say yes to what is not shown."""
    from subagents_nb.domain.policy.permissions import PART_CHARS, question_of

    asked = question.permission
    text = question_of(asked, PART_CHARS) if asked is not None else question.text
    choices = f"\nChoices: {' / '.join(question.choices)}" if question.choices and asked is None else ""
    by = question.question_id.rpartition("/")[0]
    answer = f"subagents-nb answer {run.id} --question {question.question_id} -- …"
    return f"\n{f'{by}: ' if by else ''}{text.strip()}{choices}\nAnswer it: {answer}"


def text_of(value: Any) -> str:
    """Return what a terminal shows of what a verb returned: of a list the text that a notebook has for it."""
    from subagents_nb.blocks import to_text
    from subagents_nb.domain.agents.agent import AgentCatalog
    from subagents_nb.launching import Runs
    from subagents_nb.launching.stored.project_trust import ProjectTrust
    from subagents_nb.notebook.plans.lists import described

    shown = (Runs, AgentCatalog, ProjectTrust)
    return to_text(described(value)) if isinstance(value, shown) else str(value)


def attach(call: Call) -> Run:
    """Return the handle of a run with the user's types, bound if asked for."""
    from subagents_nb import launching
    from subagents_nb.notebook.bodies.namespace import lookup

    options = call.options
    if options.schema:
        run = launching.attach(call.run.id, schema=lookup(options.schema, call.variables, "--schema"))
    else:
        run = call.typed_run
    if options.bind is not None:
        call.variables[options.bind] = run
    return run


def wait(call: Call) -> Runs:
    """Wait for the runs that are named, or all that are live."""
    from subagents_nb import launching
    from subagents_nb.notebook.views.waiting_line import waiting_line

    named = [call.find(word) for word in call.options.run] or list(launching.runs(state="live"))
    with waiting_line(lambda: [run.status for run in named]):
        ids = [run.id for run in named] if call.options.run else []
        waited = launching.wait_for(ids, **call.arguments_for(launching.wait_for))
    for snapshot in waited.snapshots:
        if snapshot.ended:
            call.saw_end(snapshot.run_id)
    return waited


def is_incomplete(waited: Runs) -> bool:
    """Whether anything that was waited for is not complete."""
    return any(snapshot.state != "complete" for snapshot in waited.snapshots)


def compare(call: Call) -> Comparison | Diff:
    """Compare the runs that are named, or those of an experiment; or what two of them were told and said."""
    from subagents_nb import experiments

    options = call.options
    if options.texts:
        if len(two := call.meant()) != 2:
            raise RequestError(f"--texts puts two runs beside one another; name two, and not {len(two)}.")
        return experiments.diff(*two)
    named = options.experiment or (None if options.run else experiments.current_experiment())
    return experiments.compare(
        chosen(call, named),
        baseline=options.baseline,
        by=options.by or None,
        metrics=options.metric or None,
        lower=options.lower,
    )


def chosen(call: Call, experiment: str | None) -> Any:
    """Return the runs that are named, and those of an experiment; what stands alone is returned as it is."""
    from subagents_nb import launching

    runs = call.meant()
    if experiment is not None:
        runs.append(launching.runs(experiment=experiment))
    if not runs:
        call.refuse("say which runs: a sweep, runs, or --experiment NAME")
    return runs if len(runs) > 1 else runs[0]


def experiment(call: Call) -> Any:
    """Set or tell the experiment of later launches."""
    from subagents_nb.launching.gathering.experiment import current_experiment, set_experiment
    from subagents_nb.notebook.cards.receipts import Receipt

    options = call.options
    if options.off:
        set_experiment(None)
        return Receipt.about("experiment", "off", "later launches belong to none")
    if options.name is not None:
        set_experiment(options.name)
        return Receipt.about(options.name, "experiment", "later launches of this kernel belong to it")
    current = current_experiment()
    hint = "later launches belong to it" if current else "name one: %subagent_experiment NAME"
    return Receipt.about(current or "experiment", "current" if current else "none", hint)


def agents(_: Call) -> AgentCatalog:
    """Return the agents that can be used from here."""
    from subagents_nb import launching

    return launching.agents()


def trust(call: Call) -> ProjectTrust:
    """Return what this project brings that can act, after allowing it if that was asked."""
    from subagents_nb import launching

    options = call.options
    return launching.trust(
        options.name, folder=options.folder, contents=options.contents, revoke=options.revoke, shown=options.shown
    )


def doctor(_: Call) -> Checkup:
    """Check the store, the supervisor, models and keys."""
    from subagents_nb.launching.stored.doctor import examine

    return examine()
