"""The same verbs in a terminal: `subagents-nb list|status|chain|wait|stop|steer|append|resume|gc|…`; see `--help`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from subagents_nb import cli_chains, cli_experiments
from subagents_nb.cli_chains import ASKED_BY
from subagents_nb.errors import SubagentsError
from subagents_nb.terminal import complain, say
from subagents_nb.version import __version__

_DEMO_TASK = "Say in one short sentence why a program should write down what it is doing."

_RECEIPTS = {
    "delivered": "the agent was told.",
    "queued": "waiting; the agent is told before its next request, or when its turn is over.",
    "too-late": "too late, it ended first.",
}
_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code: 0 well, 1 refused or failed, 2 bad usage, 130 interrupted."""
    options = _parser().parse_args(argv)
    try:
        return int(options.command(options))
    except SubagentsError as error:
        complain(f"subagents-nb: {error}")
        return 1
    except KeyboardInterrupt as interrupt:
        complain(f"\n{interrupt or 'Interrupted.'}")
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="subagents-nb", description="Look after the subagents of your notebooks.")
    parser.add_argument("--version", action="version", version=f"subagents-nb {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("list", help="list runs, newest first")
    listing.add_argument("--state", help="only runs in this state, `live`, or `asking`")
    listing.add_argument("-n", type=int, default=20, metavar="NUMBER", help="at most so many ended runs (20)")
    listing.add_argument("--notebook", metavar="FILE", help="only runs of this notebook, as it was named at the launch")
    listing.add_argument("--cell", metavar="ID", help="only runs of the cell with this id")
    listing.add_argument("--phase", metavar="WORD", help="only runs that name this phase, or have a step that does")
    listing.set_defaults(command=_list)

    _of_run(commands, "status", _status, "show one run: how it stands and what it came to")

    waiting = commands.add_parser("wait", help="wait for runs to end; all live ones if none is named")
    waiting.add_argument("run", nargs="*")
    waiting.add_argument("--timeout", metavar="TIME", help="wait at most so long; the runs go on")
    waiting.set_defaults(command=_wait)

    stop = commands.add_parser("stop", help="stop runs; what they wrote is kept")
    stop.add_argument("run", nargs="*", help="ids, names, or at least 8 characters of an id")
    stop.add_argument("--all", action="store_true", help="all that are live")
    stop.set_defaults(command=_stop)
    interrupt = _of_run(commands, "interrupt", _interrupt, "pause a run; `resume` goes on from it")
    for ending in (stop, interrupt):
        ending.add_argument("--reason", default="", help="why, for the record")

    _add_step(stop, "stop this step of a chain alone; the others go on")
    steer = _of_run(commands, "steer", _steer, "say something to the agent while it works", text=True)
    steer.add_argument("--follow-up", action="store_true", help="when its turn is over, not before its next request")
    _add_step(steer, "which step of a chain is meant, where several are at work")
    answer = _of_run(commands, "answer", _answer, "answer a question of a run", text=True)
    answer.add_argument("--question", metavar="ID", help="which one, if several are open")
    resume = _of_run(commands, "resume", _resume, "start a new run that goes on from an ended one", text=True)
    resume.add_argument("--timeout", metavar="TIME", help="its deadline, such as 30m; else what is left of the old one")
    resume.add_argument("--max-requests", type=int, metavar="NUMBER", help="how often it may ask the model, likewise")
    resume.add_argument("--usage-budget", metavar="AMOUNT", help="what it may use, as 200k or '$2', likewise")
    resume.add_argument("--name", help="a name to find it by")
    _add_step(resume, "of a chain: only this step goes on, as a run of its own")
    retune = _of_run(commands, "retune", cli_chains.retune, "change the limits of a live run; the change is recorded")
    retune.add_argument("--timeout", metavar="TIME", help="deadline, counted from when it began to work")
    retune.add_argument("--tool-timeout", metavar="TIME", help="how long one tool call may take")
    retune.add_argument("--max-requests", type=int, metavar="NUMBER", help="how often it may ask the model in all")
    retune.add_argument("--concurrency", type=int, metavar="NUMBER", help="how many steps may be at work at a time")
    retune.add_argument("--tokens", metavar="AMOUNT", help="tokens that all steps together may use, as 200k")
    retune.add_argument("--cost", metavar="DOLLARS", help="what all steps together may cost")

    chain = commands.add_parser("chain", help="launch a chain from a YAML file, as in a %%%%subagent_chain cell")
    chain.add_argument("file", help="the file; - reads from standard input")
    for flag, about in (("--model", "the model of all steps that name none"), ("--name", "a name to find it by")):
        chain.add_argument(flag, help=about)
    chain.add_argument("--timeout", metavar="TIME", help="its deadline, such as 30m; else it has none of its own")
    chain.set_defaults(command=cli_chains.launch_chain)
    append = _of_run(commands, "append", cli_chains.append, "append the items of a YAML file to a live chain")
    append.add_argument("file", help="the file; - reads from standard input")

    for name, work, about in (
        ("diff", cli_chains.diff, "print what a run changed in its git worktrees, as a patch"),
        ("apply", cli_chains.apply, "put these changes into the repository: all of them, or nothing"),
        ("discard", cli_chains.discard, "remove the worktrees of a run that were kept, with all that is in them"),
    ):
        verb = _of_run(commands, name, work, about)
        _add_step(verb, "only this step")
        if name == "apply":
            verb.add_argument("--check", action="store_true", help="say whether they fit, and change nothing")

    gc = commands.add_parser("gc", help="delete old runs; they lie in the trash for a day")
    gc.add_argument("--dry-run", action="store_true", help="change nothing, list what would be deleted")
    gc.add_argument("--days", type=float, metavar="N", help="delete what is older (keep_days in the settings)")
    gc.add_argument("--now", action="store_true", help="empty the trash at once")
    gc.set_defaults(command=_gc)
    _of_run(commands, "restore", _restore, "bring a run back from the trash")

    export = commands.add_parser("export", help="write runs that have ended into a zip file")
    export.add_argument("run", nargs="+", help="id, name, or at least 8 characters of the id")
    export.add_argument("-o", "--output", required=True, metavar="FILE.zip", help="the new file")
    export.set_defaults(command=_export)
    import_ = commands.add_parser("import", help="take the runs of such a file in: to look at, and to be reused")
    import_.add_argument("file")
    import_.set_defaults(command=_import)
    for carrying in (export, import_):
        carrying.add_argument("--project", metavar="DIR", help="the project they belong to (the current directory)")

    transcript = _of_run(commands, "transcript", _transcript, "write what was said as a notebook")
    transcript.add_argument("--step", type=int, metavar="N", help="only this step")
    transcript.add_argument("-o", "--output", metavar="FILE", help="where to; else it lies with the run")

    send = commands.add_parser("send", help="send ended runs to MLflow, trackio, Inspect AI or OpenTelemetry")
    send.add_argument("run", nargs="+", help="ids or names")
    send.add_argument(
        "--to", required=True, metavar="NAME", help="mlflow, trackio, inspect, otel, or what is installed"
    )
    send.add_argument("--prompts", action="store_true", help="send what was said too")
    send.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the exporter, such as url=…"
    )
    send.set_defaults(command=_send)

    cli_experiments.add_verbs(commands)
    commands.add_parser("agents", help="list the agents that can be used from here").set_defaults(command=_agents)
    commands.add_parser("doctor", help="check that everything is in order").set_defaults(command=_doctor)

    demo = commands.add_parser("demo", help="launch one run with the embedded model and watch it here")
    demo.add_argument("--model", help="another model")
    demo.set_defaults(command=_demo)

    local = commands.add_parser("local-model", help="install or remove the embedded model")
    local.add_argument("action", choices=("install", "uninstall"))
    local.set_defaults(command=_local_model)
    return parser


def _of_run(
    commands: _Commands, name: str, command: Callable[[argparse.Namespace], int], about: str, *, text: bool = False
) -> argparse.ArgumentParser:
    """Add a command about one run, and with `text` what is said to it."""
    parser = commands.add_parser(name, help=about)
    parser.add_argument("run", help="id, name, or at least 8 characters of the id")
    if text:
        parser.add_argument("text")
    parser.set_defaults(command=command)
    return parser


def _add_step(parser: argparse.ArgumentParser, about: str) -> None:
    parser.add_argument("--step", type=int, metavar="NUMBER", help=about)


def _list(options: argparse.Namespace) -> int:
    from subagents_nb import launching
    from subagents_nb.notebook.lists import runs_text

    about = {name: getattr(options, name) for name in ("notebook", "cell", "phase")}
    found = launching.runs(state=options.state, limit=options.n, **about)
    say(runs_text(found))
    return 0


def _status(options: argparse.Namespace) -> int:
    from subagents_nb import launching
    from subagents_nb.domain.retention import size
    from subagents_nb.notebook.card import card_text
    from subagents_nb.notebook.graph import stages_text
    from subagents_nb.notebook.view import attention_line
    from subagents_nb.store.usage import DISK_CAP_BYTES, disk_use

    run = launching.attach(options.run)
    snapshot, paths = run.status, run.home.run(run.id)
    stages, figures = stages_text(snapshot), stages_text(snapshot, figures=True)
    say(card_text(snapshot).replace(stages, figures, 1) if stages else card_text(snapshot))
    if wants_a_look := attention_line(snapshot):
        say(f"It may need a look: {wants_a_look}")
    if (budget := snapshot.usage_budget) is not None:
        say(f"It used {budget.words(snapshot.usage)}.")
    say(f"\n{run.id}  {paths.root}  {size(disk_use(paths))} of at most {size(DISK_CAP_BYTES)}")
    return 0 if snapshot.error is None else 1


def _wait(options: argparse.Namespace) -> int:
    from subagents_nb import launching
    from subagents_nb.notebook.lists import runs_text

    say(runs_text(waited := launching.wait_for(options.run, timeout=options.timeout)))
    return 0 if all(snapshot.state == "complete" for snapshot in waited.snapshots) else 1


def _stop(options: argparse.Namespace) -> int:
    from subagents_nb import launching
    from subagents_nb.errors import RequestError
    from subagents_nb.launching.selecting import runs_of
    from subagents_nb.notebook.view import text_line

    if bool(options.run) == options.all:
        raise RequestError("Say which run to stop, or --all for all that are live.")
    if options.step is not None and len(options.run) != 1:
        raise RequestError("--step is of one run.")
    chosen = runs_of(options.run) if options.run else list(launching.runs(state="live"))
    asked = [run for run in chosen if run.stop(options.reason, step=options.step, asked_by=ASKED_BY)]
    if options.step is not None and asked:
        say(f"{asked[0].name}: step {options.step} is asked to stop; the others go on.")
        return 0
    ended = [run.wait(10.0) for run in asked]
    for run in chosen:
        say(text_line(run.status))
    return 0 if all(ended) else 1


def _steer(options: argparse.Namespace) -> int:
    from subagents_nb import launching

    run = launching.attach(options.run)
    receipt = run.steer(options.text, follow_up=options.follow_up, step=options.step, asked_by=ASKED_BY)
    outcome = receipt.outcome if receipt is not None else "queued"
    say(f"{run.name}: {_RECEIPTS.get(outcome, outcome)}")
    return int(outcome == "too-late")


def _answer(options: argparse.Namespace) -> int:
    from subagents_nb import launching
    from subagents_nb.domain.words import one_line

    run = launching.attach(options.run)
    asked = run.answer(options.text, question=options.question, asked_by=ASKED_BY).text
    say(f"{run.name}: answered: {one_line(asked)}")
    return 0


def _interrupt(options: argparse.Namespace) -> int:
    from subagents_nb import launching
    from subagents_nb.notebook.view import text_line

    run = launching.attach(options.run)
    run.interrupt(options.reason, asked_by=ASKED_BY)
    ended = run.wait(10.0)
    say(text_line(run.status))
    return 0 if ended else 1


def _resume(options: argparse.Namespace) -> int:
    from subagents_nb import launching
    from subagents_nb.domain.plan import Origin

    source = launching.attach(options.run)
    limits = {"timeout": options.timeout, "max_requests": options.max_requests, "usage_budget": options.usage_budget}
    run = source.resume(options.text, step=options.step, name=options.name, **limits, origin=Origin(surface="cli"))
    say(f"{run.name} goes on from {source.name}. See it: subagents-nb status {run.id}")
    return 0


def _gc(options: argparse.Namespace) -> int:
    from subagents_nb.launching.retention import gc

    say(done := gc(dry_run=options.dry_run, days=options.days, now=options.now))
    return 1 if done.failed else 0


def _restore(options: argparse.Namespace) -> int:
    from subagents_nb.launching.retention import restore

    run = restore(options.run)
    say(f"{run.name} is back: {run.id}")
    return 0


def _transcript(options: argparse.Namespace) -> int:
    from subagents_nb import launching

    say(launching.attach(options.run).transcript(options.step, to=options.output))
    return 0


def _send(options: argparse.Namespace) -> int:
    from subagents_nb.errors import RequestError
    from subagents_nb.exporters import export

    chosen: dict[str, str | bool] = {"prompts": True} if options.prompts else {}
    for pair in options.set:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise RequestError(f"--set {pair} sets nothing; write --set NAME=VALUE.")
        chosen[name] = value
    say(report := export(options.run, options.to, **chosen))
    return 1 if report.failed else 0


def _export(options: argparse.Namespace) -> int:
    from subagents_nb.launching.archive import export_runs

    written = export_runs(options.run, options.output, project=options.project)
    say(f"{options.output}: {len(written)} run{'' if len(written) == 1 else 's'}, with tasks, prompts and answers")
    return 0


def _import(options: argparse.Namespace) -> int:
    from subagents_nb.launching.archive import import_runs

    taken, known = import_runs(options.file, project=options.project)
    lines = [*(f"taken in: {run_id}" for run_id in taken), *(f"here already: {run_id}" for run_id in known)]
    say("\n".join(lines) or "There are no runs in it.")
    return 0


def _agents(_: argparse.Namespace) -> int:
    from subagents_nb import launching
    from subagents_nb.notebook.lists import agents_text

    say(agents_text(launching.agents()))
    return 0


def _doctor(_: argparse.Namespace) -> int:
    from subagents_nb.launching.doctor import examine

    say(checkup := examine())
    return 0 if checkup.ok else 1


def _demo(options: argparse.Namespace) -> int:
    from subagents_nb import launching, local_model

    model = options.model or ("scripted:echo" if local_model.available() else "local:smollm2")
    run = launching.launch("delegate", _DEMO_TASK, model=model, fresh=True)
    say(f"{run.name} works on {model}, in a process of its own: {run.id}\n")
    shown = 0
    while True:
        snapshot = run.status
        fresh = snapshot.status.steps[0].tail_end - shown if snapshot.status is not None else 0
        if fresh > 0:
            say(snapshot.tail[-fresh:], end="", flush=True)
            shown += fresh
        if snapshot.ended:
            break
        time.sleep(0.05)
    say(run.text[shown:] if snapshot.state == "complete" else "")
    say(f"\n{run.name} is {snapshot.state}. See it again: subagents-nb status {run.id}")
    return 0 if snapshot.error is None else 1


def _local_model(options: argparse.Namespace) -> int:
    from subagents_nb import local_model
    from subagents_nb.store import open_home

    if options.action == "install":
        say(f"The embedded model is ready: {local_model.install(lambda line: say(line, flush=True))}")
        return 0
    local_model.stop(open_home(create=False).root)
    removed = local_model.uninstall()
    say("\n".join(f"removed {path}" for path in removed) or "There was nothing to remove.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
