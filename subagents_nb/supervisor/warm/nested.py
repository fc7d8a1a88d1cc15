"""Runs that runs ask for: derived from the plan of the one that asks, admitted by their tree, put into the line.

An ask is answered once, on disk, before the child may begin: so whoever clears up after a parent finds its children,
and a child whose supervisor dies at that moment stands in the line like any run.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from typing import Any

from subagents_nb.domain.agents.environment import RUN_MARK, runner_environ
from subagents_nb.domain.plans.budgets import UsageBudget
from subagents_nb.domain.plans.plan import LaunchPlan, choices_of, everything
from subagents_nb.domain.runs.records import RecoveryRecord, RunStatus
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.tree.asks import ChildAnswer, ChildAsk
from subagents_nb.domain.tree.child_plan import NoChild, child_draft, delegators, template_of
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.errors import RequestError, StoreError, Unreadable
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.lock import probe
from subagents_nb.store.layout import RunPaths, StoreHome
from subagents_nb.store.runs.contracts import index_run
from subagents_nb.store.runs.first_status import first_status
from subagents_nb.store.runs.reader import FileRuns, read_document
from subagents_nb.store.runs.skill_files import kept_skills
from subagents_nb.store.runs.writer import create_run
from subagents_nb.store.tree.launches import appended_steps, is_ask_id, put_answer, read_answer, read_ask
from subagents_nb.store.tree.tree_usage import used_by
from subagents_nb.store.waiting import line
from subagents_nb.store.waiting.admissions import admit, open_budget
from subagents_nb.supervisor.ends.children_left import stop_children
from subagents_nb.supervisor.processes.identity import identify
from subagents_nb.supervisor.processes.orphans import mark_of
from subagents_nb.supervisor.warm.process_table import SpawnRequest
from subagents_nb.supervisor.warm.queue import Queue, QueuedRun

_DEFAULT_LIVE = 16


def answer_ask(home: StoreHome, queue: Queue, message: Mapping[str, Any]) -> ChildAnswer:
    """Answer what a run asks for, and take its child into the queue. Asked again, it says the same again.

    Raises:
        ValueError, StoreError, Unreadable: what was said is no ask of a run.
    """
    run_id, ask_id = str(message["run_id"]), str(message["ask_id"])
    environ = {str(name): str(value) for name, value in dict(message["environ"]).items()}
    paths = home.run(run_id)
    if not is_ask_id(ask_id):
        raise ValueError(f"{ask_id!r} names no ask")
    answer = read_answer(paths, ask_id)
    if answer is None:
        plan = read_document(paths.plan, LaunchPlan, run_id)
        answer = _decide(home, paths, plan, read_ask(paths, ask_id), environ)
    if answer.child is not None:
        _bring(home, queue, answer.child, environ)
        if probe(paths.lock) == "free":  # it ended meanwhile, and whoever saw that may have missed this child
            stop_children(home, run_id)
    return answer


def _decide(
    home: StoreHome, paths: RunPaths, plan: LaunchPlan, ask: ChildAsk, environ: Mapping[str, str]
) -> ChildAnswer:
    fields = {"run_id": plan.run_id, "ask_id": ask.ask_id, "answered_at": utc_now()}
    try:
        child = _admitted(home, paths, plan, ask, environ)
    except (NoChild, RequestError, StoreError) as error:
        answer = ChildAnswer(**fields, refused=str(error))
        put_answer(paths, answer)
        return answer
    answer = ChildAnswer(**fields, child=child)
    put_answer(paths, answer)
    return answer


def _admitted(home: StoreHome, paths: RunPaths, plan: LaunchPlan, ask: ChildAsk, environ: Mapping[str, str]) -> str:
    """Make a child's run and return its id; it stands in the line, and nobody has it begin yet.

    Raises:
        NoChild, BudgetExceeded, StoreError: why there is none.
    """
    if FileRuns(home).has_terminal_record(plan.run_id) or probe(paths.lock) != "held":
        raise NoChild("the run that asks is over")
    root_id = plan.origin.root or plan.run_id
    root = home.run(root_id)
    root_plan = plan if root_id == plan.run_id else read_document(root.plan, LaunchPlan, root_id)
    template = template_of(plan, ask, delegators(plan, appended_steps(paths)), root=root_plan.name)
    budget = _budget(root, root_plan)
    if budget is not None and budget.judge(used := used_by(root)) == "hard-reached":
        raise NoChild(f"the usage budget of the whole tree is used up: {budget.words(used)}")
    if ask.left_s is None:  # a process of the run asks, and does not know
        ask = ask.model_copy(update={"left_s": plan.left_s(FileRuns(home).snapshot(plan.run_id).elapsed_s)})
    draft = child_draft(plan, ask, template, budget=budget)
    carried = root_plan.resumes.admitted if root_plan.resumes is not None else 0
    open_budget(root, limit=root_plan.max_children, carried=carried)
    admit(root, 1, path=f"{root_plan.name}/{ask.path}")
    run_id = make_run_id(time.time_ns() // 1_000_000, secrets.randbits(50))
    child = draft.to_plan(run_id=run_id, token=secrets.token_hex(16), created_at=utc_now())
    skills = kept_skills(paths, (one for step in everything(child.steps) for one in step.skills))
    index_run(home, child)
    writer = create_run(home, child, _recovery(paths, child), skills=skills, launching=True)
    try:
        named = {name for model in choices_of(child.steps) for name in model.key_env} | {*child.tool_env}
        line.enter(home, child.run_id, child.max_live or _DEFAULT_LIVE, named.intersection(environ))
        writer.status(first_status(child, queue_keeper=identify(os.getpid(), child.token)), milestone=False)
    finally:
        writer.launched()
    return child.run_id


def _budget(root: RunPaths, plan: LaunchPlan) -> UsageBudget | None:
    """Return the budget of a tree as it is in force at its root."""
    try:
        return read_document(root.status, RunStatus, plan.run_id).usage_budget or plan.usage_budget
    except Unreadable:
        return plan.usage_budget


def _bring(home: StoreHome, queue: Queue, child: str, environ: Mapping[str, str]) -> None:
    """Take a child into the queue, with the variables of its parent; one that has begun needs nothing."""
    paths = home.run(child)
    try:
        status = read_document(paths.status, RunStatus, child)
        plan = read_document(paths.plan, LaunchPlan, child)
    except Unreadable:
        return
    if status.state is not RunState.QUEUED or status.runner is not None:
        return
    variables = {**runner_environ(environ), RUN_MARK: mark_of(child, plan.token)}
    request = SpawnRequest(child, plan.token, plan.cwd, variables)
    queue.add(QueuedRun(request, plan.max_live or _DEFAULT_LIVE))


def _recovery(parent: RunPaths, child: LaunchPlan) -> RecoveryRecord:
    """Return what a later resume of a child needs: the texts of its agents, as its root had them at its launch."""
    try:
        known = read_document(parent.recovery, RecoveryRecord, parent.root.name).agents
    except Unreadable:
        known = {}
    own = child.steps[0]
    below = {step.agent for step in everything(child.steps)}
    agents = {name: text for name, text in known.items() if name in below}
    return RecoveryRecord(
        run_id=child.run_id,
        digest=child.digest,
        agent=known.get(own.agent, {}),
        agents=agents if own.children else {},
    )
