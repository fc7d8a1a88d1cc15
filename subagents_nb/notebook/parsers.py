"""What each magic takes. Help, `?` and completion are made from these parsers, so that they can't differ."""

from __future__ import annotations

from collections.abc import Callable

from subagents_nb.notebook.experiment_flags import add_experiment_flags
from subagents_nb.notebook.options import FOREVER, MagicParser, add_step, run_parser
from subagents_nb.notebook.work_flags import add_terms, add_work_flags


def subagent_parser() -> MagicParser:
    """Return the parser of %%subagent and %subagent."""
    parser = MagicParser(
        "%%subagent",
        "Start a detached run: an agent works on the cell's body as its task, in a process of its own that\n"
        "survives the cell, the kernel and the notebook server. Returns the Run at once.",
        usage="[AGENT] [FLAGS]",
        epilog="As a line: %subagent scout -o found -- Which columns look wrong?\n"
        "See also %%subagent_chain for several steps, and %subagent_status, _wait, _attach, _stop,\n"
        "_interrupt, _resume, _again, _steer, _answer, _append, _retune, _drain, _diff, _apply, _discard,\n"
        "_agents, _doctor.",
    )
    parser.add_argument("agent", nargs="?", help="which agent; see %%subagent_agents")
    _add_binding(parser)
    _add_models(parser)
    parser.add_argument(
        "--schema",
        metavar="NAME",
        help="a pydantic model, dataclass, TypedDict or JSON Schema of yours; types the result",
    )
    _add_launching(parser)
    add_work_flags(parser)
    parser.add_argument(
        "--template", action="store_true", default=None, help="fill {{ name }} in the task from your variables"
    )
    return parser


def chain_parser() -> MagicParser:
    """Return the parser of %%subagent_chain."""
    parser = MagicParser(
        "%%subagent_chain",
        "Start a detached chain: the cell's body says in YAML which steps follow one another, which work side\n"
        "by side, and which are repeated for every item that an earlier step found. Returns the Run at once.",
        epilog="A body:\n"
        "  - scout: Which files of data/ look wrong?\n"
        "    as: found\n"
        "    schema: Findings                 # a type of yours\n"
        "  - expand: {from: {output: found, path: /files}, max_items: 20}\n"
        '    each: {reviewer: "What is wrong with {item.path}?"}\n'
        "    collect: {as: reviews}\n"
        "  - parallel:\n"
        '    - delegate: "Sum up {outputs.reviews}"\n'
        '    - worker: {task: "Mend them: {previous}", label: mending}\n'
        "A mapping {task: ..., steps: [...], attach: RUN} says what {task} stands for, and which run it goes\n"
        "on from.",
    )
    _add_binding(parser)
    _add_models(parser)
    _add_launching(parser)
    add = parser.add_argument
    add_terms(parser)
    add("--max-requests", metavar="NUMBER", help="how often each step may ask its model")
    add("--max-children", metavar="NUMBER", help="how many steps the chain may ever start (64)")
    add("--tool-budget", metavar="NUMBER", help="how many tool calls each step may make")
    add("--usage-budget", metavar="AMOUNT", help="what all steps together may use: tokens, as 200k, or money, as '$2'")
    add("--template", action="store_true", default=None, help="fill {{ name }} in its texts from your variables")
    return parser


def append_parser() -> MagicParser:
    """Return the parser of %%subagent_append."""
    parser = run_parser(
        "%%subagent_append",
        "Append items to a live chain, behind its last one. The cell's body is YAML, as in %%subagent_chain.",
    )
    parser.add_argument(
        "--template", action="store_true", default=None, help="fill {{ name }} in its texts from your variables"
    )
    return parser


def resume_parser() -> MagicParser:
    """Return the parser of %%subagent_resume and %subagent_resume."""
    parser = run_parser(
        "%subagent_resume",
        "Start a new run that goes on from the session of an ended or interrupted one, with what is said\n"
        "in the cell's body or behind --. It has the same agent, model, tools and schema, and what is left of\n"
        "the limits. A chain goes on as a whole: what is done stands, the rest is carried out.",
        "RUN [FLAGS] -- TEXT",
    )
    parser.add_argument("--name", help="a name to find the new run by")
    add_step(parser, "of a chain: only this step goes on, as a run of its own")
    parser.add_argument("--timeout", metavar="TIME", help="its deadline, such as 30m, instead of what is left")
    parser.add_argument("--max-requests", metavar="NUMBER", help="how often it may ask the model, likewise")
    parser.add_argument("--usage-budget", metavar="AMOUNT", help="what it may use, as 200k or '$2', likewise")
    _add_binding(parser)
    _add_waiting(parser)
    return parser


def again_parser() -> MagicParser:
    """Return the parser of %subagent_again."""
    parser = run_parser("%subagent_again", "Start a new run of the very same plan, whatever became of this one.")
    _add_binding(parser)
    _add_waiting(parser)
    return parser


def attach_parser() -> MagicParser:
    """Return the parser of %subagent_attach."""
    parser = run_parser("%subagent_attach", "Get a run's handle back, in any kernel, and show the run.")
    parser.add_argument("--schema", metavar="NAME", help="the type of its result, if it is not found by its name")
    _add_binding(parser)
    return parser


def status_parser() -> MagicParser:
    """Return the parser of %subagent_status."""
    parser = run_parser("%subagent_status", "List runs, newest first, or show one in full.", "[RUN] [FLAGS]", nargs="?")
    parser.add_argument("--state", metavar="STATE", help="only runs in this state, live, or asking")
    parser.add_argument("--asking", action="store_true", help="only runs that wait for your answer")
    parser.add_argument("--here", action="store_true", help="only runs of this notebook")
    parser.add_argument("--notebook", metavar="FILE", help="only runs of this notebook, as it is named from here")
    parser.add_argument("--cell", metavar="ID", help="only runs of the cell with this id")
    parser.add_argument("--phase", metavar="WORD", help="only runs that name this phase, or have a step that does")
    parser.add_argument("-n", "--number", metavar="NUMBER", help="at most so many ended runs (20)")
    return parser


def wait_parser() -> MagicParser:
    """Return the parser of %subagent_wait."""
    parser = run_parser(
        "%subagent_wait", "Wait for runs to end: the named ones, or all that are live.", "[RUN ...] [FLAGS]", nargs="*"
    )
    parser.add_argument("--timeout", metavar="TIME", help="give up after so long; the runs go on")
    return parser


def stop_parser() -> MagicParser:
    """Return the parser of %subagent_stop."""
    parser = run_parser(
        "%subagent_stop",
        "Stop runs for good. It takes effect within a second; what was written is kept. To go on later,\n"
        "use %subagent_interrupt instead.",
        "RUN ... [FLAGS]",
        nargs="*",
    )
    parser.add_argument("--all", action="store_true", help="all that are live, of every notebook of yours")
    parser.add_argument("--reason", metavar="TEXT", help="why, for the record")
    add_step(parser, "stop this step of a chain alone; the others go on")
    return parser


def interrupt_parser() -> MagicParser:
    """Return the parser of %subagent_interrupt."""
    parser = run_parser(
        "%subagent_interrupt",
        "Pause a run: its work ends now, its session is kept, and %subagent_resume goes on from it.",
    )
    parser.add_argument("--reason", metavar="TEXT", help="why, for the record")
    return parser


def steer_parser() -> MagicParser:
    """Return the parser of %%subagent_steer and %subagent_steer."""
    parser = run_parser(
        "%subagent_steer",
        "Say something to the agent while it works, in the cell's body or behind --. Waits up to three\n"
        "seconds for the receipt: told, waiting for the next request, or too late.",
        "RUN [FLAGS] -- TEXT",
    )
    parser.add_argument("--follow-up", action="store_true", help="when its turn is over, not before its next request")
    add_step(parser, "which step of a chain is meant, where several are at work")
    return parser


def answer_parser() -> MagicParser:
    """Return the parser of %%subagent_answer and %subagent_answer."""
    parser = run_parser(
        "%subagent_answer",
        "Answer a question of a run, in the cell's body or behind --. Who answers first is heard.",
        "RUN [FLAGS] -- TEXT",
    )
    parser.add_argument("--question", metavar="ID", help="which one, if several are open")
    return parser


def retune_parser() -> MagicParser:
    """Return the parser of %subagent_retune."""
    parser = run_parser(
        "%subagent_retune", "Change the limits of a live run. The change is recorded, with who and when."
    )
    parser.add_argument("--timeout", metavar="TIME", help="deadline, counted from when it began to work")
    parser.add_argument("--max-requests", metavar="NUMBER", help="how often it may ask the model in all")
    parser.add_argument("--tool-timeout", metavar="TIME", help="how long one tool call may take")
    parser.add_argument("--concurrency", metavar="NUMBER", help="how many steps of a chain may be at work at a time")
    parser.add_argument("--tokens", metavar="AMOUNT", help="tokens that all steps together may use, as 200k")
    parser.add_argument("--cost", metavar="DOLLARS", help="what all steps together may cost")
    return parser


def drain_parser() -> MagicParser:
    """Return the parser of %subagent_drain."""
    return run_parser("%subagent_drain", "Let a run finish what it is doing and start nothing new.")


def diff_parser() -> MagicParser:
    """Return the parser of %subagent_diff."""
    parser = run_parser(
        "%subagent_diff", "Show what a run changed in git worktrees of its own. Your files are as they were."
    )
    add_step(parser, "only what this step changed")
    return parser


def apply_parser() -> MagicParser:
    """Return the parser of %subagent_apply."""
    parser = run_parser(
        "%subagent_apply",
        "Put what a run changed in its worktrees into the repository it was launched from: all of it, or\n"
        "nothing where it does not fit. Nothing is committed.",
    )
    add_step(parser, "only what this step changed")
    parser.add_argument("--check", action="store_true", help="say whether it fits, and change nothing")
    return parser


def discard_parser() -> MagicParser:
    """Return the parser of %subagent_discard."""
    parser = run_parser(
        "%subagent_discard",
        "Remove the worktrees and branches of a run that were kept, with all that is in them.\n"
        "Changes that were captured stay: %subagent_diff shows them.",
    )
    add_step(parser, "only the worktree of this step")
    return parser


def agents_parser() -> MagicParser:
    """Return the parser of %subagent_agents."""
    return MagicParser(
        "%subagent_agents",
        "List the agents that can be used from here, where each comes from, and which files can't be used.",
    )


def doctor_parser() -> MagicParser:
    """Return the parser of %subagent_doctor."""
    return MagicParser(
        "%subagent_doctor", "Check the store, the supervisor, models and keys; say what to do about what is wrong."
    )


def experiment_parser() -> MagicParser:
    """Return the parser of %subagent_experiment."""
    parser = MagicParser(
        "%subagent_experiment",
        "Let every later launch of this kernel belong to an experiment, or say which one it is.",
        usage="[NAME] [FLAGS]",
    )
    parser.add_argument("name", nargs="?", help="what it is called; quote a name with spaces")
    parser.add_argument("--off", action="store_true", help="let later launches belong to none")
    return parser


def compare_parser() -> MagicParser:
    """Return the parser of %subagent_compare."""
    parser = run_parser(
        "%subagent_compare",
        "Compare runs by the parameters in which they differ: scores with spread and interval, cost,\n"
        "time, and the paired difference to a baseline. Without runs: those of the current experiment.",
        "[RUN ...] [FLAGS]",
        nargs="*",
    )
    add = parser.add_argument
    add("--experiment", metavar="NAME", help="the runs of this experiment")
    add("--baseline", metavar="NAME=VALUE", help="what the others are held against, as model=a or model=a,style=x")
    add("--by", action="append", default=[], metavar="NAME", help="a parameter that makes the groups; repeatable")
    add("--metric", action="append", default=[], metavar="NAME", help="a score or figure to show; repeatable")
    add("--lower", action="append", default=[], metavar="NAME", help="a score of which less is better; repeatable")
    return parser


def retry_parser() -> MagicParser:
    """Return the parser of %subagent_retry."""
    return run_parser(
        "%subagent_retry",
        "Start a new run of the very plan of each run that failed, was lost or stopped, and of no other.\n"
        "Of a sweep, cells without a run too.",
        "RUN [RUN ...]",
        nargs="+",
    )


def export_parser() -> MagicParser:
    """Return the parser of %subagent_export."""
    parser = run_parser(
        "%subagent_export",
        "Send ended runs to another tool. What was sent before is brought up to date, never doubled.",
        "RUN [RUN ...] --to NAME [FLAGS]",
        nargs="+",
    )
    add = parser.add_argument
    add("--to", metavar="NAME", help="mlflow, trackio, inspect, otel, or what another package adds")
    add("--prompts", action="store_true", help="send what was said too; inspect always does")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="an option of the exporter, such as url=…")
    return parser


def transcript_parser() -> MagicParser:
    """Return the parser of %subagent_transcript."""
    parser = run_parser("%subagent_transcript", "Write what was said in a run as a notebook beside this one.")
    add_step(parser, "only this step")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to; NAME-transcript.ipynb if not given")
    return parser


# By the magic's name.
PARSERS: dict[str, Callable[[], MagicParser]] = {
    "subagent": subagent_parser,
    "subagent_chain": chain_parser,
    "subagent_append": append_parser,
    "subagent_resume": resume_parser,
    "subagent_again": again_parser,
    "subagent_attach": attach_parser,
    "subagent_status": status_parser,
    "subagent_wait": wait_parser,
    "subagent_stop": stop_parser,
    "subagent_interrupt": interrupt_parser,
    "subagent_steer": steer_parser,
    "subagent_answer": answer_parser,
    "subagent_retune": retune_parser,
    "subagent_drain": drain_parser,
    "subagent_diff": diff_parser,
    "subagent_apply": apply_parser,
    "subagent_discard": discard_parser,
    "subagent_agents": agents_parser,
    "subagent_doctor": doctor_parser,
    "subagent_experiment": experiment_parser,
    "subagent_compare": compare_parser,
    "subagent_retry": retry_parser,
    "subagent_export": export_parser,
    "subagent_transcript": transcript_parser,
}


def _add_models(parser: MagicParser) -> None:
    add = parser.add_argument
    add("--name", help="a name to find the run by")
    add("--model", help="provider:model, provider/model:thinking, local:smollm2, scripted:NAME or ENDPOINT:model")
    add("--thinking", metavar="LEVEL", help="off, minimal, low, medium, high, xhigh or max")


def _add_launching(parser: MagicParser) -> None:
    add = parser.add_argument
    add("--cwd", metavar="DIR", help="where the agent works; it can't leave this directory")
    add("--inputs", metavar="NAMES", help="variables of yours that the agent gets copies of: df,config,fig")
    add("--max-input-mb", metavar="NUMBER", help="how much they may take together (100)")
    add("--timeout", metavar="TIME", help="deadline of the run: seconds, or 90s, 30m, 1.5h")
    add("--tool-timeout", metavar="TIME", help="how long one tool call may take")
    _add_waiting(parser)
    add(
        "--no-queue", action="store_true", default=None, help="refuse when no place is free, instead of waiting for one"
    )
    add("--tag", action="append", default=[], metavar="WORD", help="a word to find the run by; may be repeated")
    add("--reuse", metavar="WHICH", help="which run like it may stand in: tracked (unchanged files), complete, never")
    add("--fresh", action="store_true", help="start a new run even if there is one like it")
    add("--dry-run", action="store_true", help="show the whole plan and its digest; start nothing")
    add_experiment_flags(parser)


def _add_binding(parser: MagicParser) -> None:
    parser.add_argument("-o", "--bind", metavar="NAME", help="bind the Run to this variable")
    parser.add_argument("--force", action="store_true", help="let -o replace a builtin or a module")


def _add_waiting(parser: MagicParser) -> None:
    parser.add_argument(
        "--wait",
        metavar="TIME",
        nargs="?",
        const=FOREVER,
        help="wait for the end, or for so long; the run goes on anyway",
    )
    parser.add_argument("-q", "--quiet", action="store_true", default=None, help="show nothing; the run still starts")
