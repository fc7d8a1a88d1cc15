"""What is read of a run for an exporter."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from support import make_verdict, run_id

from subagents_nb import Run
from subagents_nb.domain.runs.records import Artifact
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import RequestError, Unreadable
from subagents_nb.exporters.gather import gather
from subagents_nb.exporters.sent_files import attachments, read_attachment
from subagents_nb.store.files.lock import hold
from subagents_nb.store.runs.writer import RunWriter

Record = Callable[..., Run]


def test_times_of_requests_and_tools_come_from_the_events(record: Record) -> None:
    (step,) = gather(record()).steps
    assert [(span.start[17:19], span.end[17:19]) for span in step.requests] == [("02", "03"), ("04", "06")]
    assert [(span.name, span.start[17:19], span.end[17:19], span.ok) for span in step.tools] == [
        ("read", "03", "04", True)
    ]
    assert (step.start[17:19], step.end[17:19]) == ("02", "06")


def test_params_a_person_gave_stand_in_the_place_of_ours(record: Record) -> None:
    found = gather(record(plan={"experiment": {"params": {"model": "mine", "style": "short"}}}))
    params = found.params()
    assert (params["model"], params["style"], params["agent"], params["tools"]) == ("mine", "short", "scout", "read")


def test_a_cost_that_nobody_knows_is_no_zero(record: Record) -> None:
    assert gather(record()).metrics()["cost_usd"] == 0.25
    assert "cost_usd" not in gather(record(2, usage={"requests": 1})).metrics()


def test_a_run_that_has_not_ended_is_refused(record: Record) -> None:
    run = record(ended=False)
    alive = hold(run.home.run(run.id).lock)
    with pytest.raises(RequestError, match="is running; wait for its end"):
        gather(run)
    os.close(alive)


def test_a_lost_run_has_what_it_got_to(record: Record) -> None:
    run = record(ended=False)
    RunWriter(run.home.run(run.id)).verdict(make_verdict())
    found = gather(run)
    assert (found.state, found.reason, found.text) == (RunState.LOST, "vanished", "working")
    assert found.steps[0].result.agent == "scout"


def test_of_equal_scores_the_latest_counts(record: Record) -> None:
    run = record()
    run.score("accuracy", 0.5)
    run.score("accuracy", 0.75)
    run.score("accuracy", 0.25, case="a")
    assert sorted((s.case or "", s.number) for s in gather(run).scores) == [("", 0.75), ("a", 0.25)]


@pytest.mark.parametrize("path", ["../../secret", "/etc/hostname", "artifacts/../../x", ""])
def test_no_file_outside_of_the_run_goes_along(record: Record, path: str) -> None:
    found = gather(record(artifacts=(Artifact(path=path, size=1, sha256="0"),)))
    assert attachments(found, prompts=False) == ()


def test_a_link_is_not_followed(record: Record) -> None:
    run = record()
    file = run.home.run(run.id).root / "artifacts" / "plot.png"
    file.unlink()
    file.symlink_to("/etc/hostname")
    found = gather(run)
    with pytest.raises(Unreadable):
        read_attachment(found, attachments(found, prompts=False)[0])


def test_the_transcript_goes_along_only_on_demand(record: Record) -> None:
    found = gather(record())
    assert [one.name for one in attachments(found, prompts=False)] == ["artifacts/plot.png"]
    named = {one.name: one for one in attachments(found, prompts=True)}
    assert b"count the rows" in read_attachment(found, named["transcript.ipynb"])
    assert read_attachment(found, named["answer.md"]) == b"three rows"
    assert run_id() == found.run_id
