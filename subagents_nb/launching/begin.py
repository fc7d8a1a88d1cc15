"""Start a planned run: directory, process, first status, and only then `proceed`."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from subagents_nb.domain.agent import AgentDefinition
from subagents_nb.domain.environment import runner_environ
from subagents_nb.domain.ids import make_run_id
from subagents_nb.domain.plan import Draft, LaunchPlan
from subagents_nb.domain.records import Identity, RecoveryRecord, RunStatus, StepStatus
from subagents_nb.store import RunWriter, StoreHome, create_run
from subagents_nb.store.clock import utc_now
from subagents_nb.supervisor import Started, start_runner
from subagents_nb.supervisor.identity import boot_id, host_id, pid_namespace


def begin(draft: Draft, agent: AgentDefinition, *, home: StoreHome, environ: Mapping[str, str] | None = None) -> str:
    """Start the run of a draft and return its id; when this returns, the runner may work and its owner is on disk.

    Raises:
        StoreError: its directory could not be made; nothing is left.
        LaunchError: its process could not be started; nothing is left.
    """
    variables = runner_environ(os.environ if environ is None else environ)
    plan = draft.to_plan(
        run_id=make_run_id(time.time_ns() // 1_000_000, secrets.randbits(50)),
        token=secrets.token_hex(16),
        created_at=utc_now(),
    )
    writer = create_run(home, plan, _recovery(plan, agent))
    started: Started | None = None
    try:
        started = start_runner(home, run_id=plan.run_id, token=plan.token, cwd=plan.cwd, environ=variables)
        writer.status(first_status(plan, started), milestone=True)
        started.proceed(plan.token)
    except BaseException:
        if started is not None:
            started.abandon()
        shutil.rmtree(writer.paths.root, ignore_errors=True)
        raise
    return plan.run_id


def first_status(plan: LaunchPlan, started: Started) -> RunStatus:
    """Return the status that the launcher writes: queued, with the identity of the process that waits."""
    now = utc_now()
    return RunStatus(
        run_id=plan.run_id,
        name=plan.name,
        mode=plan.mode,
        digest=plan.digest,
        runner=Identity(
            pid=started.pid,
            start_ticks=started.start_ticks,
            boot_id=boot_id(),
            pid_namespace=pid_namespace(),
            host=host_id(),
            token=plan.token,
        ),
        started_at=plan.created_at,
        updated_at=now,
        timeout_s=plan.timeout_s,
        steps=tuple(StepStatus(index=s.index, agent=s.agent, model=s.model.label) for s in plan.steps),
        notes=plan.notes,
    )


def _recovery(plan: LaunchPlan, agent: AgentDefinition) -> RecoveryRecord:
    deadline = datetime.now(UTC) + timedelta(seconds=plan.timeout_s) if plan.timeout_s else None
    return RecoveryRecord(
        run_id=plan.run_id,
        digest=plan.digest,
        agent=agent.model_dump(mode="json"),
        deadline_at=deadline.isoformat(timespec="seconds").replace("+00:00", "Z") if deadline else None,
    )


__all__ = ["RunWriter", "begin", "first_status"]
