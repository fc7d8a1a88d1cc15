"""The verbs: a row each, in the order of the reference. A new verb is a row here and a function beside the others."""

from __future__ import annotations

from functools import partial

from subagents_nb.domain.plans.options import of_launch
from subagents_nb.notebook.verbs import controlling, defining, looking, preserving, starting
from subagents_nb.notebook.verbs.arguments import (
    AGENT,
    AS_A_LAUNCH,
    BINDING,
    EXPERIMENT,
    LISTING,
    OF_THE_STORE,
    PROJECT,
    REASON,
    SCOPE,
    TEMPLATE,
    WAITING,
    many_arg,
    step_arg,
)
from subagents_nb.notebook.verbs.verb import Verb, amount_of, arg, count

VERBS: tuple[Verb, ...] = (
    Verb(
        name="launch", magic_name="subagent", text="task", call=starting.launch, launches="agent",
        help="start a detached run: an agent works on a task",
        about="Start a detached run: an agent works on the cell's body as its task, in a process of its own that\n"
        "survives the cell, the kernel and the notebook server. Returns the Run at once.",
        usage="[AGENT] [FLAGS]",
        epilog="As a line: %subagent scout -o found -- Which columns look wrong?\n"
        "See also %%subagent_chain for several steps, and %subagent_status, _wait, _attach, _stop,\n"
        "_interrupt, _resume, _again, _steer, _answer, _append, _retune, _drain, _diff, _apply, _discard,\n"
        "_agents, _doctor.",
        not_in_terminal="`chain` launches a file of one step as well as of many",
    ),
    Verb(
        name="chain", yaml="steps", call=starting.chain, launches="chain", in_terminal=starting.print_begun,
        help="launch a chain from a YAML file, as in a %%subagent_chain cell",
        about="Start a detached chain: the cell's body says in YAML which steps follow one another, which work side\n"
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
        args=tuple(
            one.add_to(partial(arg, not_in_cell=AS_A_LAUNCH), chain=True) for one in of_launch(chain=True)
        ),
    ),
    Verb(
        name="list", args=LISTING, call=looking.list_runs,
        help="list runs, newest first",
        not_in_cell="%subagent_status without a run lists them",
    ),
    Verb(
        name="status", runs="maybe", args=LISTING, call=looking.status,
        in_cell=looking.show_status, in_terminal=looking.print_status,
        help="show the board of all runs, or one run: how it stands and what it came to",
        about="Show runs as a live board, grouped by what they need, or one run in full. On the board runs are\n"
        "answered, steered, stopped and opened, by mouse or by keys; --state and --asking say which\nstand on it.",
    ),
    Verb(
        name="board", args=LISTING, call=looking.list_runs, in_terminal=looking.run_board,
        help="all runs live, grouped by what they need; answer, steer, stop and open them by keys",
        not_in_cell="%subagent_status without a run shows it",
    ),
    Verb(
        name="attach", runs="one", call=looking.attach,
        help="get a run's handle back, in any kernel, and show the run",
        args=(
            arg("--schema", metavar="NAME", help="the type of its result, if it is not found by its name"),
            *BINDING,
        ),
        not_in_terminal="a terminal holds no handle; `status` shows the run",
    ),
    Verb(
        name="wait", runs="any", call=looking.wait, fails=looking.is_incomplete,
        help="wait for runs to end; all live ones if none is named",
        about="Wait for runs to end: the named ones, or all that are live.",
        args=(arg("--timeout", metavar="TIME", help="give up after so long; the runs go on"),),
    ),
    Verb(
        name="stop", runs="any", call=controlling.stop,
        in_cell=controlling.show_stopped, in_terminal=controlling.print_stopped,
        help="stop runs; what they wrote is kept",
        about="Stop runs for good. It takes effect within a second; what was written is kept. To go on later,\n"
        "use %subagent_interrupt instead.",
        usage="RUN ... [FLAGS]",
        args=(
            arg("--all", action="store_true", help="all that are live, of every notebook of yours"),
            REASON,
            step_arg("stop this step of a chain alone; the others go on"),
        ),
    ),
    Verb(
        name="interrupt", runs="one", args=(REASON,),
        call=controlling.interrupt, in_terminal=controlling.print_settled,
        help="pause a run; `resume` goes on from it",
        about="Pause a run: its work ends now, its session is kept, and %subagent_resume goes on from it.",
    ),
    Verb(
        name="steer", runs="one", text="text", call=controlling.steer,
        in_cell=controlling.show_steered, in_terminal=controlling.print_steered,
        help="say something to the agent while it works",
        about="Say something to the agent while it works, in the cell's body or behind --. Waits up to three\n"
        "seconds for the receipt: told, waiting for the next request, or too late.",
        args=(
            arg("--follow-up", action="store_true", help="when its turn is over, not before its next request"),
            step_arg("which step of a chain is meant, where several are at work"),
        ),
    ),
    Verb(
        name="answer", runs="one", text="text", call=controlling.answer,
        help="answer a question of a run",
        about="Answer a question of a run, in the cell's body or behind --. Who answers first is heard.",
        args=(arg("--question", metavar="ID", help="which one, if several are open"),),
    ),
    Verb(
        name="append", runs="one", yaml="items", args=(TEMPLATE,), call=controlling.append,
        help="append the items of a YAML file to a live chain",
        about="Append items to a live chain, behind its last one. The cell's body is YAML, as in %%subagent_chain.",
    ),
    Verb(
        name="retune", runs="one", call=controlling.retune,
        fails=controlling.too_late,
        help="change the limits of a live run; the change is recorded",
        about="Change the limits of a live run. The change is recorded, with who and when.",
        args=(
            arg("--timeout", metavar="TIME", help="deadline, counted from when it began to work"),
            arg("--max-requests", metavar="NUMBER", read=count(), help="how often it may ask the model in all"),
            arg("--tool-timeout", metavar="TIME", help="how long one tool call may take"),
            arg("--concurrency", metavar="NUMBER", read=count(),
                help="how many steps of a chain may be at work at a time"),
            arg("--tokens", metavar="AMOUNT", read=amount_of("tokens"),
                help="tokens that all steps together may use, as 200k"),
            arg("--cost", metavar="DOLLARS", read=amount_of("usd"), help="what all steps together may cost"),
            arg("--usage-budget", metavar="AMOUNT", help="--tokens or --cost, by its unit, as 200k or $2"),
        ),
    ),
    Verb(
        name="drain", runs="one", call=controlling.drain,
        help="let a run finish what it is doing and start nothing new",
    ),
    Verb(
        name="resume", runs="one", text="text", call=starting.resume, in_terminal=starting.print_resumed,
        help="start a new run that goes on from an ended one",
        about="Start a new run that goes on from the session of an ended or interrupted one, with what is said\n"
        "in the cell's body or behind --. It has the same agent, model, tools and schema, and what is left of\n"
        "the limits. A chain goes on as a whole: what is done stands, the rest is carried out.",
        args=(
            arg("--name", help="a name to find the new run by"),
            step_arg("of a chain: only this step goes on, as a run of its own"),
            arg("--timeout", metavar="TIME", help="its deadline, such as 30m, instead of what is left"),
            arg("--max-requests", metavar="NUMBER", read=count(), help="how often it may ask the model, likewise"),
            arg("--usage-budget", metavar="AMOUNT", help="what it may use, as 200k or '$2', likewise"),
            *BINDING,
            *WAITING,
        ),
    ),
    Verb(
        name="again", runs="one", args=(*BINDING, *WAITING), call=starting.again, in_terminal=starting.print_begun,
        help="start a new run of the very same plan",
        about="Start a new run of the very same plan, whatever became of this one.",
    ),
    Verb(
        name="retry", runs="any", args=(EXPERIMENT,), call=starting.retry, in_terminal=starting.print_retried,
        help="launch again those of the runs that failed, by their own plans",
        about="Start a new run of the very plan of each run that failed, was lost or stopped, and of no other.\n"
        "Of a sweep, cells without a run too.",
    ),
    Verb(
        name="compare", runs="any", call=looking.compare,
        help="compare runs by the parameters in which they differ",
        about="Compare runs by the parameters in which they differ: scores with spread and interval, cost,\n"
        "time, and the paired difference to a baseline. Without runs: those of the current experiment.",
        args=(
            EXPERIMENT,
            arg("--baseline", metavar="NAME=VALUE",
                help="what the others are held against, as model=a or model=a,style=x"),
            many_arg("--by", "a parameter that makes the groups"),
            many_arg("--metric", "a score or figure to show"),
            many_arg("--lower", "a score of which less is better"),
            arg("--texts", action="store_true",
                help="of two runs: plan, prompts and answers side by side, with the words marked that differ"),
        ),
    ),
    Verb(
        name="experiment", call=looking.experiment, usage="[NAME] [FLAGS]",
        help="let later launches belong to an experiment",
        about="Let every later launch of this kernel belong to an experiment, or say which one it is.",
        args=(
            arg("name", nargs="?", help="what it is called; quote a name with spaces"),
            arg("--off", action="store_true", help="let later launches belong to none"),
        ),
        not_in_terminal="it holds for the later launches of one kernel",
    ),
    Verb(
        name="diff", runs="one", call=preserving.diff, in_cell=preserving.show_diff, in_terminal=preserving.print_diff,
        help="print what a run changed in its git worktrees, as a patch",
        about="Show what a run changed in git worktrees of its own. Your files are as they were.",
        args=(step_arg("only what this step changed"),),
    ),
    Verb(
        name="apply", runs="one", call=preserving.apply,
        in_cell=preserving.show_applied, in_terminal=preserving.print_applied,
        help="put these changes into the repository: all of them, or nothing",
        about="Put what a run changed in its worktrees into the repository it was launched from: all of it, or\n"
        "nothing where it does not fit. Nothing is committed.",
        args=(
            step_arg("only what this step changed"),
            arg("--check", action="store_true", help="say whether it fits, and change nothing"),
        ),
    ),
    Verb(
        name="discard", runs="one", call=preserving.discard,
        in_cell=preserving.show_discarded, in_terminal=preserving.print_discarded,
        help="remove the worktrees of a run that were kept, with all that is in them",
        about="Remove the worktrees and branches of a run that were kept, with all that is in them.\n"
        "Changes that were captured stay: %subagent_diff shows them.",
        args=(step_arg("only the worktree of this step"),),
    ),
    Verb(
        name="transcript", runs="one", call=preserving.transcript, in_cell=preserving.show_written,
        help="write what was said as a notebook",
        about="Write what was said in a run as a notebook beside this one.",
        args=(
            step_arg("only this step"),
            arg("-o", "--output", metavar="FILE", help="where to; NAME-transcript.ipynb if not given",
                in_terminal={"help": "where to; else it lies with the run"}),
        ),
    ),
    Verb(
        # In a terminal `export` writes an archive.
        name="export", command_name="send", runs="some", call=preserving.export, fails=lambda report: report.failed,
        help="send ended runs to another tool, such as MLflow",
        about="Send ended runs to another tool. What was sent before is brought up to date, never doubled.",
        usage="RUN [RUN ...] --to NAME [FLAGS]",
        args=(
            arg("--to", metavar="NAME", help="the exporter's name; without one, all are named"),
            arg("--prompts", action="store_true", help="send what was said too; inspect always does"),
            arg("--set", action="append", default=[], metavar="NAME=VALUE",
                help="an option of the exporter, such as url=…"),
        ),
    ),
    Verb(
        name="archive", command_name="export", runs="some", call=preserving.archive,
        help="write runs that have ended into a zip file",
        args=(arg("-o", "--output", required=True, metavar="FILE.zip", help="the new file"), PROJECT),
        not_in_cell="an archive goes from store to store, not from a notebook to another",
    ),
    Verb(
        name="import", call=preserving.take_in,
        help="take the runs of such a file in: to look at, and to be reused",
        args=(arg("file"), PROJECT),
        not_in_cell="an archive goes from store to store, not from a notebook to another",
    ),
    Verb(
        name="gc", call=preserving.gc, fails=lambda done: done.failed,
        help="delete old runs; they lie in the trash for a day",
        args=(
            arg("--dry-run", action="store_true", help="change nothing, list what would be deleted"),
            arg("--days", type=float, metavar="N", help="delete what is older (keep_days in the settings)"),
            arg("--now", action="store_true", help="empty the trash at once"),
        ),
        not_in_cell=OF_THE_STORE,
    ),
    Verb(
        name="restore", runs="one", call=preserving.restore,
        help="bring a run back from the trash",
        not_in_cell=OF_THE_STORE,
    ),
    Verb(
        name="agents", call=looking.agents,
        help="list the agents that can be used from here",
        about="List the agents that can be used from here, where each comes from, and which files can't be used.",
    ),
    Verb(
        name="create", text="prompt", call=defining.create, usage="NAME [FLAGS] -- PROMPT",
        help="write a new agent file",
        about="Write a new agent file with the cell's body as its prompt. It is never written over another.",
        args=(
            arg("name", help="what it is called"),
            arg("--description", metavar="TEXT", help="what it is for, in one line"),
            arg("--tools", metavar="NAMES", help="what it may use, as 'read, grep'; those that read if not given"),
            arg("--model", help="which model it asks where a launch names none"),
            arg("--thinking", metavar="LEVEL", help="how hard it thinks"),
            SCOPE,
        ),
    ),
    Verb(
        name="eject", agent=True, call=defining.eject, args=(AGENT, SCOPE), usage="NAME [FLAGS]",
        help="copy a built-in or installed agent to a file of yours, to be edited",
    ),
    Verb(
        name="disable", agent=True, call=defining.disable, args=(AGENT, SCOPE), usage="NAME [FLAGS]",
        help="let an agent be launched no more, by a line in your settings",
    ),
    Verb(
        name="enable", agent=True, call=defining.enable, args=(AGENT, SCOPE), usage="NAME [FLAGS]",
        help="take that line back; says what else still disables it",
    ),
    Verb(
        name="refine", agent=True, call=defining.refine, in_terminal=defining.print_refined,
        usage="NAME [RUN ...] [FLAGS]",
        help="show what was added to an agent's instructions; propose, apply or take back additions",
        about="Show what was added to the instructions of an agent beside its file. With runs: have a reviewer\n"
        "look at results of the agent in them, 8 at most, and propose additions. Nothing is added until you\n"
        "apply it.",
        epilog="They lie in ~/.subagents/refinements/NAME.md, which you may edit.",
        args=(
            AGENT,
            arg("run", nargs="*", help="runs of the agent from which a reviewer learns"),
            arg("--model", help="the model of the reviewer"),
            arg("--apply", metavar="RUN", help="add what this reviewer's run proposes"),
            arg("--rollback", action="store_true", help="go back to the text before the last change"),
            arg("--to", metavar="NUMBER", read=count(0), help="to this revision instead; 0: to none"),
            SCOPE,
            *BINDING,
            *WAITING,
        ),
    ),
    Verb(
        name="validate", call=defining.validate, fails=lambda validation: not validation.ok,
        help="read all agent files: what of each is carried out, refused, noted or broken",
        about="Read every agent file that counts from here, and say of each with its lines what is carried out,\n"
        "what keeps the agent from beginning, what is only noted, and what is wrong.",
    ),
    Verb(
        name="trust", usage="[NAME ...] [FLAGS]", call=looking.trust,
        help="show what this project brings that can act, and allow it",
        about="Show what this project brings that can act with your rights: agents with a shell or kernel, agents\n"
        "that take the name of one you know, commands, scripts; with what is new since you allowed it.",
        epilog="Your answer is kept in ~/.subagents/trust, never in the project. Of a folder that is trusted,\n"
        "what a run changed is asked for again.",
        args=(
            arg("name", nargs="*", help="which of it is meant; all if none is named"),
            arg("--folder", action="store_true", help="allow this folder, whatever it brings from now on"),
            arg("--contents", action="store_true", help="allow what is there or named as it is now, and nothing else"),
            arg("--revoke", action="store_true", help="take back what was allowed"),
            arg("--shown", metavar="DIGEST", help="allow only if nothing changed since it was shown"),
        ),
    ),
    Verb(
        name="doctor", call=looking.doctor, fails=lambda checkup: not checkup.ok,
        help="check that everything is in order",
        about="Check the store, the supervisor, models and keys; say what to do about what is wrong.",
    ),
    Verb(
        name="demo", call=starting.demo, in_terminal=starting.print_demo,
        help="launch one run with the embedded model and watch it here",
        args=(arg("--model", help="another model"),),
        not_in_cell="it shows a run to who has no notebook yet",
    ),
    Verb(
        name="local-model", call=preserving.local_model,
        help="install or remove the embedded model",
        args=(arg("action", choices=("install", "uninstall")),),
        not_in_cell="it installs for all notebooks, before one is opened",
    ),
)  # fmt: skip
