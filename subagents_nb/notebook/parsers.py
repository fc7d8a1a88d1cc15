"""What each magic takes. Help, `?` and completion are made from these parsers, so that they can't differ."""

from __future__ import annotations

from collections.abc import Callable

from subagents_nb.notebook.options import FOREVER, MagicParser

_RUN = "a variable that holds the run, its name, its id, or at least 8 characters of the id"


def subagent_parser() -> MagicParser:
    """Return the parser of %%subagent and %subagent."""
    parser = MagicParser(
        "%%subagent",
        "Start a detached run: an agent works on the cell's body as its task, in a process of its own that\n"
        "survives the cell, the kernel and the notebook server. Returns the Run at once.",
        usage="[AGENT] [FLAGS]",
        epilog="As a line: %subagent scout -o found -- Which columns look wrong?\n"
        "See also %subagent_status, _wait, _attach, _stop, _interrupt, _resume, _again, _steer, _answer,\n"
        "_retune, _drain, _agents, _doctor.",
    )
    add = parser.add_argument
    add("agent", nargs="?", help="which agent; see %%subagent_agents")
    _add_binding(parser)
    add("--name", help="a name to find the run by")
    add("--model", help="provider:model, provider/model:thinking, local:smollm2, scripted:NAME or ENDPOINT:model")
    add("--thinking", metavar="LEVEL", help="off, minimal, low, medium, high, xhigh or max")
    add(
        "--schema",
        metavar="NAME",
        help="a pydantic model, dataclass, TypedDict or JSON Schema of yours; types the result",
    )
    add("--cwd", metavar="DIR", help="where the agent works; it can't leave this directory")
    add("--timeout", metavar="TIME", help="deadline of the run: seconds, or 90s, 30m, 1.5h")
    add("--tool-timeout", metavar="TIME", help="how long one tool call may take")
    _add_waiting(parser)
    add(
        "--no-queue", action="store_true", default=None, help="refuse when no place is free, instead of waiting for one"
    )
    add("--tag", action="append", default=[], metavar="WORD", help="a word to find the run by; may be repeated")
    add("--template", action="store_true", default=None, help="fill {{ name }} in the task from your variables")
    add("--dry-run", action="store_true", help="show the whole plan and its digest; start nothing")
    return parser


def resume_parser() -> MagicParser:
    """Return the parser of %%subagent_resume and %subagent_resume."""
    parser = _run_parser(
        "%subagent_resume",
        "Start a new run that goes on from the session of an ended or interrupted one, with what is said\n"
        "in the cell's body or behind --. It has the same agent, model, tools and schema, and what is left of\n"
        "the limits.",
        "RUN [FLAGS] -- TEXT",
    )
    parser.add_argument("--name", help="a name to find the new run by")
    parser.add_argument("--timeout", metavar="TIME", help="its deadline, such as 30m, instead of what is left")
    parser.add_argument("--max-requests", metavar="NUMBER", help="how often it may ask the model, likewise")
    _add_binding(parser)
    _add_waiting(parser)
    return parser


def again_parser() -> MagicParser:
    """Return the parser of %subagent_again."""
    parser = _run_parser("%subagent_again", "Start a new run of the very same plan, whatever became of this one.")
    _add_binding(parser)
    _add_waiting(parser)
    return parser


def attach_parser() -> MagicParser:
    """Return the parser of %subagent_attach."""
    parser = _run_parser("%subagent_attach", "Get a run's handle back, in any kernel, and show the run.")
    parser.add_argument("--schema", metavar="NAME", help="the type of its result, if it is not found by its name")
    _add_binding(parser)
    return parser


def status_parser() -> MagicParser:
    """Return the parser of %subagent_status."""
    parser = _run_parser(
        "%subagent_status", "List runs, newest first, or show one in full.", "[RUN] [FLAGS]", nargs="?"
    )
    parser.add_argument("--state", metavar="STATE", help="only runs in this state, or live")
    parser.add_argument("-n", "--number", metavar="NUMBER", help="at most so many ended runs (20)")
    return parser


def wait_parser() -> MagicParser:
    """Return the parser of %subagent_wait."""
    parser = _run_parser(
        "%subagent_wait", "Wait for runs to end: the named ones, or all that are live.", "[RUN ...] [FLAGS]", nargs="*"
    )
    parser.add_argument("--timeout", metavar="TIME", help="give up after so long; the runs go on")
    return parser


def stop_parser() -> MagicParser:
    """Return the parser of %subagent_stop."""
    parser = _run_parser(
        "%subagent_stop",
        "Stop a run for good. It takes effect within a second; what was written is kept. To go on later,\n"
        "use %subagent_interrupt instead.",
    )
    parser.add_argument("--reason", metavar="TEXT", help="why, for the record")
    return parser


def interrupt_parser() -> MagicParser:
    """Return the parser of %subagent_interrupt."""
    parser = _run_parser(
        "%subagent_interrupt",
        "Pause a run: its work ends now, its session is kept, and %subagent_resume goes on from it.",
    )
    parser.add_argument("--reason", metavar="TEXT", help="why, for the record")
    return parser


def steer_parser() -> MagicParser:
    """Return the parser of %%subagent_steer and %subagent_steer."""
    parser = _run_parser(
        "%subagent_steer",
        "Say something to the agent while it works, in the cell's body or behind --. Waits up to three\n"
        "seconds for the receipt: told, waiting for the next request, or too late.",
        "RUN [FLAGS] -- TEXT",
    )
    parser.add_argument("--follow-up", action="store_true", help="when its turn is over, not before its next request")
    return parser


def answer_parser() -> MagicParser:
    """Return the parser of %%subagent_answer and %subagent_answer."""
    parser = _run_parser(
        "%subagent_answer",
        "Answer a question of a run, in the cell's body or behind --. Who answers first is heard.",
        "RUN [FLAGS] -- TEXT",
    )
    parser.add_argument("--question", metavar="ID", help="which one, if several are open")
    return parser


def retune_parser() -> MagicParser:
    """Return the parser of %subagent_retune."""
    parser = _run_parser(
        "%subagent_retune", "Change the limits of a live run. The change is recorded, with who and when."
    )
    parser.add_argument("--timeout", metavar="TIME", help="deadline, counted from when it began to work")
    parser.add_argument("--max-requests", metavar="NUMBER", help="how often it may ask the model in all")
    parser.add_argument("--tool-timeout", metavar="TIME", help="how long one tool call may take")
    return parser


def drain_parser() -> MagicParser:
    """Return the parser of %subagent_drain."""
    return _run_parser("%subagent_drain", "Let a run finish what it is doing and start nothing new.")


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


# By the magic's name.
PARSERS: dict[str, Callable[[], MagicParser]] = {
    "subagent": subagent_parser,
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
    "subagent_agents": agents_parser,
    "subagent_doctor": doctor_parser,
}


def _run_parser(magic: str, description: str, usage: str = "RUN [FLAGS]", *, nargs: str | None = None) -> MagicParser:
    """Return a parser for a magic that is about runs that exist."""
    parser = MagicParser(magic, description, usage=usage)
    parser.add_argument("run", nargs=nargs, help=_RUN)
    return parser


def _add_binding(parser: MagicParser) -> None:
    parser.add_argument("-o", "--output", dest="bind", metavar="NAME", help="bind the Run to this variable")
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
