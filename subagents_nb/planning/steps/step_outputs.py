"""Where a step keeps its answer, what it reads first, and whether it keeps a progress file."""

from __future__ import annotations

import posixpath

from subagents_nb.domain.agents.agent import READ_TOOLS, WRITE_TOOLS, AgentDefinition
from subagents_nb.domain.agents.guarded import is_protected, is_secret
from subagents_nb.domain.plans.bounds import OutputPlan
from subagents_nb.domain.plans.flow import Step
from subagents_nb.domain.values.reasons import Reasons
from subagents_nb.planning.launch_environment import LaunchEnvironment

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 2048
_WORDS = {"true": True, "false": False}  # as they come from a line of a cell
_READERS = (*READ_TOOLS, "bash")


def plan_output(
    asked: Step,
    agent: AgentDefinition,
    environment: LaunchEnvironment,
    reasons: Reasons,
    *,
    namespace: str | None = None,
) -> OutputPlan | None:
    """Return the output file of a step, or None after adding what is wrong with it to the reasons.

    What the step asks for wins over its agent's; True is the agent's own. `namespace` is the folder that an agent's own
    file gets inside a group; a path that a step asks for stays as it is.
    """
    wanted = asked.output
    if isinstance(wanted, str):
        wanted = _WORDS.get(wanted.strip().lower(), wanted)
    explicit = isinstance(wanted, str)
    path_option = wanted if isinstance(wanted, str) else None if wanted is False else agent.output
    if wanted is True and path_option is None:
        reasons.append(f"output asks for the agent's own file, and agent {agent.name} names none; give a path")
        return None
    # An agent that only ever answers by file does not, where its file is switched off.
    mode = asked.output_mode or ("inline" if wanted is False else agent.output_mode) or "inline"
    if path_option is None:
        if mode == "file-only":
            reasons.append("output_mode is file-only, and there is no output file; name one with output")
        return None
    what = "output" if explicit else f"output of agent {agent.name}"
    path = _inside(path_option, what, environment.cwd, reasons)
    if path is None:
        return None
    if is_protected(path):
        reasons.append(
            f"{what}: {path_option!r} is a file that no agent may write (secrets, .git, folders of agents, what "
            "programs begin with); name another"
        )
        return None
    if _is_of_the_store(path, environment):
        reasons.append(f"{what}: {path_option!r} lies in the run store, where no agent may write; name another")
        return None
    if namespace is not None and not explicit and not path_option.startswith("/"):
        path = f"{namespace}/{path}"
    return OutputPlan(path=path, mode=mode, explicit=explicit)


def plan_reads(
    asked: Step, agent: AgentDefinition, environment: LaunchEnvironment, reasons: Reasons
) -> tuple[str, ...]:
    """Return the files a step is told to read first, each once; what is wrong with them is added to the reasons."""
    explicit = asked.reads is not None
    names = asked.reads if asked.reads is not None else agent.reads
    if not names:
        return ()
    what = "reads" if explicit else f"reads of agent {agent.name}"
    if not set(_READERS).intersection(agent.effective_tools):
        if explicit:
            reasons.append(
                f"reads names files, and agent {agent.name} has no tool to read them with; put their text in the task"
            )
        return ()
    paths: dict[str, None] = {}
    for name in names:
        path = _inside(name, what, environment.cwd, reasons)
        if path is not None and is_secret(path):
            reasons.append(f"{what}: {name!r} is a file that no agent may read, since such names hold secrets")
        elif path is not None and _is_of_the_store(path, environment):
            reasons.append(f"{what}: {name!r} lies in the run store, and other runs are no business of an agent's")
        elif path is not None:
            paths[path] = None
    return tuple(paths)


def plan_progress(asked: Step, agent: AgentDefinition, reasons: Reasons) -> bool:
    """Say whether the step keeps a progress file. An agent that can't write keeps none; to ask it to is refused."""
    can = bool(set(WRITE_TOOLS).intersection(agent.effective_tools))
    if asked.progress and not can:
        reasons.append(
            f"progress asks for a progress file, and agent {agent.name} has no tool to write it with "
            f"({', '.join(WRITE_TOOLS)})"
        )
    wanted = asked.progress if asked.progress is not None else agent.progress
    return bool(wanted) and can


def _is_of_the_store(path: str, environment: LaunchEnvironment) -> bool:
    store = environment.store
    return store is not None and (store == "." or f"{path}/".casefold().startswith(f"{store}/".casefold()))


def _inside(given: str, what: str, cwd: str, reasons: Reasons) -> str | None:
    """Return a path relative to the run's directory, in its shortest form; None after adding what is wrong with it."""
    problem = _problem(given)
    if problem is None:
        # A worktree has its own directory: what is absolute is taken relative to the one that the run is in.
        path = posixpath.normpath(posixpath.relpath(given, cwd) if given.startswith("/") else given)
        if path == ".." or path.startswith("../"):
            problem = f"lies outside the run's directory ({cwd})"
        elif path == ".":
            problem = "is the run's directory itself, not a file"
        else:
            return path
    reasons.append(f"{what}: {given!r} {problem}")
    return None


def _problem(path: str) -> str | None:
    if not path.strip():
        return "is empty; name a file"
    if any(ord(char) < 32 or 127 <= ord(char) < 160 or "\ud800" <= char <= "\udfff" for char in path):
        return "holds characters that no file name should (controls, NUL, half a character)"
    if path.startswith("~"):
        return "begins with ~, which stands for nothing here; name a file relative to the run's directory"
    if path.endswith("/") or path.rsplit("/", 1)[-1] in (".", ".."):
        return "names a directory; name a file"
    if max(len(part.encode()) for part in path.split("/")) > MAX_NAME_BYTES or len(path.encode()) > MAX_PATH_BYTES:
        return "is too long for a path"
    return None
