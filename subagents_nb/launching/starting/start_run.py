"""Start a planned run: directory, process, first status, and only then `proceed`."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from subagents_nb.domain.agents.agent import AgentDefinition
from subagents_nb.domain.agents.environment import runner_environ
from subagents_nb.domain.plans.plan import Draft, LaunchPlan, choices_of, outputs_of
from subagents_nb.domain.runs.records import RecoveryRecord
from subagents_nb.domain.runs.reuse import NO_PLACE
from subagents_nb.domain.values.ids import make_run_id
from subagents_nb.domain.values.reasons import OF_THE_RUN, Reason
from subagents_nb.errors import LaunchError, LaunchRefused, Unreadable
from subagents_nb.launching.following.observers import tell_launched
from subagents_nb.launching.gathering.sessions import sessions_for
from subagents_nb.launching.gathering.skill_folders import skills_for
from subagents_nb.launching.starting.claiming import claiming
from subagents_nb.launching.starting.nested_launch import refuse_within
from subagents_nb.store import FileRuns, RunWriter, StoreHome, create_run, open_home
from subagents_nb.store.clock import utc_now
from subagents_nb.store.files.lock import owner_of, probe
from subagents_nb.store.kept.trash import SESSION_LEASE
from subagents_nb.store.runs.contracts import index_run
from subagents_nb.store.runs.first_status import first_status
from subagents_nb.store.runs.input_files import Content
from subagents_nb.store.runs.skill_files import SkillFiles
from subagents_nb.store.runs.writer import discard_run
from subagents_nb.store.tree.followers import note_follower
from subagents_nb.store.waiting import line
from subagents_nb.store.waiting.capacity import slots_taken, take_slot
from subagents_nb.supervisor.processes.identity import identify
from subagents_nb.supervisor.protocol.reaching import SupervisorGone, ask, connect_queue
from subagents_nb.supervisor.start import Started, start_runner
from subagents_nb.supervisor.warm import takeover

_TRIES = 3
_LEAVING_S = 0.01
_AT_ONCE_S = 1.0  # so long a resume waits for its runner, which takes some milliseconds warm and a second cold


def start_run(
    draft: Draft,
    agents: Mapping[str, AgentDefinition],
    *,
    home: StoreHome,
    limit: int,
    inputs: Sequence[Content] = (),
    skills: Mapping[str, SkillFiles] = MappingProxyType({}),
    earlier: str | None = None,
    queue: bool = True,
    environ: Mapping[str, str] | None = None,
) -> str:
    """Start the run of a draft, whose steps use `agents`, and return its id.

    When this returns, the runner may work and its owner is on disk.

    Sessions that its steps go on from are copied into it, from the run `earlier` if that has the copies; so are its
    skills, as they are in `skills`.

    Beyond `limit` live runs, and behind runs that wait for a place it could have, it is queued with the supervisor and
    started in its turn; or refused if `queue` is False.

    Raises:
        LaunchRefused: no place is free for it and it may not wait, or an output file of its belongs to a live run.
        StoreError: its directory could not be made; nothing is left.
        LaunchError: its process could not be started; nothing is left, but for a revival that had one: it has failed.
    """
    refuse_within("this")
    open_home(home.root)  # of a copied or cleared store only the runs may be there
    sessions = sessions_for(home, draft, earlier)
    folders = skills_for(home, draft.steps, draft.items, skills, earlier)
    with claiming(home, draft.cwd, outputs_of(draft.steps, draft.items)) as claim:
        return _create_and_start(
            draft,
            agents,
            claim,
            home=home,
            limit=limit,
            inputs=inputs,
            sessions=sessions,
            skills=folders,
            queue=queue,
            environ=environ,
        )


def _create_and_start(
    draft: Draft,
    agents: Mapping[str, AgentDefinition],
    claim: Callable[[str], None],
    *,
    home: StoreHome,
    limit: int,
    inputs: Sequence[Content],
    sessions: Mapping[str, bytes],
    skills: Mapping[str, SkillFiles],
    queue: bool,
    environ: Mapping[str, str] | None,
) -> str:
    place = take_slot(home, limit)
    if place is None and (not queue or draft.resumes is not None):
        may_not = "a resumed run can't wait" if queue else _MAY_NOT
        raise LaunchRefused([_no_slot(home, limit, may_not)])
    if draft.resumes is not None and (holder := _who_holds(home, draft.resumes.run_id)) is not None:
        if place is not None:
            os.close(place)
        raise LaunchError(f"The run can't go on from this session: it is being resumed by {holder}.")
    if place is None:
        draft = draft.model_copy(update={"notes": (*draft.notes, _queued_note(home, limit))})
    variables = runner_environ(os.environ if environ is None else environ)
    plan = draft.to_plan(
        run_id=make_run_id(time.time_ns() // 1_000_000, secrets.randbits(50)),
        token=secrets.token_hex(16),
        created_at=utc_now(),
    )
    index_run(home, plan)
    try:
        claim(plan.run_id)
        note_follower(home, plan)
        writer = create_run(
            home, plan, _recovery(plan, agents), inputs=inputs, sessions=sessions, skills=skills, launching=True
        )
    except BaseException:
        if place is not None:
            os.close(place)
        raise
    try:
        if place is None:
            _enqueue(home, writer, plan, limit, variables)
        else:
            _start(home, writer, plan, place, variables)
    finally:
        writer.launched()
    tell_launched(home, plan.run_id)
    return plan.run_id


def _who_holds(home: StoreHome, run_id: str) -> str | None:
    """Say who goes on from a session now; None: nobody. Whoever comes first in this moment, its runner decides."""
    lease = home.run(run_id).root / SESSION_LEASE
    deadline = time.monotonic() + _AT_ONCE_S
    while probe(lease) == "held":
        owner = owner_of(lease)
        if owner is None or not FileRuns(home).has_terminal_record(owner) or time.monotonic() > deadline:
            break
        time.sleep(_LEAVING_S)  # that run is over, and its process about to leave
    else:
        return None
    return f"another run, {owner}: steer that one, or stop it" if owner else "another run"


def why_no_slot(home: StoreHome, limit: int) -> str | None:
    """Say why a run that may not wait could not begin now; None: it could, as far as a look tells."""
    if line.wanted(os.listdir(home.capacity) if home.capacity.is_dir() else ()) > (taken := slots_taken(home)):
        return _no_slot(home, limit, _MAY_NOT)
    return _no_slot(home, limit, _MAY_NOT) if taken >= limit else None


_MAY_NOT = "--no-queue forbids to wait"
_LOOKED_AT, _NAMED = 500, 5


def _queued_note(home: StoreHome, limit: int) -> str:
    """Say at the launch of a run that it has to wait."""
    return " ".join(filter(None, [f"{NO_PLACE}: at most {limit} runs are live.", _asking(home)]))


def _asking(home: StoreHome) -> str:
    """Say which of the live runs only wait for the person."""
    reader = FileRuns(home)
    live = (run_id for run_id in reader.ids()[:_LOOKED_AT] if not reader.has_terminal_record(run_id))
    asking = [snapshot.name for snapshot in map(reader.snapshot, live) if not snapshot.ended and snapshot.questions]
    if not asking:
        return ""
    named = ", ".join(asking[:_NAMED]) + (", …" if len(asking) > _NAMED else "")
    wait = "run waits" if len(asking) == 1 else "runs wait"
    return f"{len(asking)} {wait} for your answer: {named}; see %subagent_status --asking."


def _no_slot(home: StoreHome, limit: int, may_not: str) -> str:
    if slots_taken(home) < limit:
        text = f"other runs have waited for a place for longer, and {may_not}; stop one of those, or try again later"
        return Reason(text, place=OF_THE_RUN)
    text = f"{limit} runs are live, which is the limit (max_live_runs in the settings), and {may_not}"
    asking = _asking(home).rstrip(".")
    return Reason(f"{text}. {asking}" if asking else f"{text}; stop one first", place=OF_THE_RUN)


def _start(home: StoreHome, writer: RunWriter, plan: LaunchPlan, place: int, environ: Mapping[str, str]) -> None:
    started: Started | None = None
    try:
        started = start_runner(home, run_id=plan.run_id, token=plan.token, cwd=plan.cwd, environ=environ, place=place)
        writer.status(
            first_status(plan, runner=identify(started.pid, plan.token, ticks=started.start_ticks)), milestone=True
        )
        if plan.resumes is None:
            started.proceed(plan.token)
        else:
            _revive(started, plan)
    except BaseException as error:
        # A revival that had a process stays listed, as failed, by our word or that of who watched it. Others leave
        # nothing, unless their process could not be seen to end: then what is known about it is kept.
        if started is None or (started.abandon(error) and plan.resumes is None):
            discard_run(writer.paths)
        raise


def _revive(started: Started, plan: LaunchPlan) -> None:
    """Have a runner go on from its session. One that takes long is spoken with beside us, and fails by itself.

    Raises:
        LaunchError: it failed at once.
    """
    failed: list[BaseException] = []

    def exchange() -> None:
        try:
            started.revive(plan.token)
            started.proceed(plan.token)
        except BaseException as error:  # noqa: BLE001 - it is told where it is waited for, else in the run itself
            failed.append(error)
            started.abandon(error)

    # No daemon: a program that ends after its last line must not cut the exchange off.
    thread = threading.Thread(target=exchange, name="resume")
    thread.start()
    thread.join(_AT_ONCE_S)
    if not thread.is_alive() and failed:
        raise failed[0]


def _enqueue(home: StoreHome, writer: RunWriter, plan: LaunchPlan, limit: int, environ: Mapping[str, str]) -> None:
    """Put a run into the line, which is on disk, and bring it to the supervisor that keeps it, with its variables."""
    named = {name for model in choices_of(plan.steps, plan.items) for name in model.key_env} | {*plan.tool_env}
    try:
        keeper = _queue_owner(home)
        line.enter(home, plan.run_id, limit, named.intersection(environ))
        writer.status(first_status(plan, queue_keeper=identify(keeper, plan.token)), milestone=True)
    except BaseException:
        line.leave(home, plan.run_id)
        discard_run(writer.paths)
        raise
    takeover.keep_environ(home, plan.run_id, environ)
    # From here on it stands in the line, whoever ends: if this supervisor does now, the next one takes it over.
    with contextlib.suppress(LaunchError, Unreadable):
        if (turn := line.find(home, plan.run_id)) is not None:
            takeover.bring(home, turn, environ)


def _queue_owner(home: StoreHome) -> int:
    """Return the pid of the supervisor that keeps the line; one that was just leaving is followed by another."""
    for _ in range(_TRIES):
        with contextlib.suppress(SupervisorGone), contextlib.closing(connect_queue(home)) as lines:
            return int(ask(lines, {"op": "ping"})["pid"])
    raise LaunchError("No supervisor stays to keep the line; try again.")


def _recovery(plan: LaunchPlan, agents: Mapping[str, AgentDefinition]) -> RecoveryRecord:
    dumped = {name: agent.model_dump(mode="json") for name, agent in agents.items()}
    deadline = datetime.now(UTC) + timedelta(seconds=plan.timeout_s) if plan.timeout_s else None
    return RecoveryRecord(
        run_id=plan.run_id,
        digest=plan.digest,
        agent={} if plan.is_flow else dumped[plan.steps[0].agent],
        agents=dumped if plan.is_flow or plan.steps[0].children else {},
        deadline_at=deadline.isoformat(timespec="seconds").replace("+00:00", "Z") if deadline else None,
    )
