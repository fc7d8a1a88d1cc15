"""Which run a person means."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from support import make_result, run_id

from subagents_nb.domain.runs.records import RunResult
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.ids import make_run_id, short_id
from subagents_nb.errors import AmbiguousRun, UnknownRun
from subagents_nb.store import FileRuns, StoreHome, find_run
from subagents_nb.store.files.codec import encode
from subagents_nb.store.runs.lookup import ELSEWHERE, HERE, IMPORTED, IN_PROJECT


@pytest.fixture
def runs_named(home: StoreHome) -> Callable[..., FileRuns]:
    """Return what stores ended runs of these names, the oldest first."""
    return lambda *names: stored(home, *(make_result(n, name=name) for n, name in enumerate(names, start=1)))


def stored(home: StoreHome, *results: RunResult) -> FileRuns:
    for result in results:
        home.run(result.run_id).root.mkdir()
        home.run(result.run_id).result.write_bytes(encode(result))
    return FileRuns(home)


def test_an_id_a_unique_name_and_a_unique_prefix_find_a_run(
    runs_named: Callable[..., FileRuns], home: StoreHome
) -> None:
    runs = runs_named("one", "two")
    other = make_run_id(1_900_000_000_000, 5)
    stored(home, make_result().model_copy(update={"run_id": other, "name": "late"}))
    assert find_run(run_id(1), runs) == run_id(1)
    assert find_run(" two ", runs) == run_id(2)
    assert find_run(other[:8], runs) == other


def test_a_name_that_two_runs_have_lists_both_and_chooses_none(runs_named: Callable[..., FileRuns]) -> None:
    with pytest.raises(AmbiguousRun) as caught:
        find_run("same", runs_named("same", "same", "other"))
    assert run_id(1) in str(caught.value) and run_id(2) in str(caught.value) and run_id(3) not in str(caught.value)


def test_a_given_name_means_the_newest_run_of_the_notebook_else_of_the_project(
    runs_named: Callable[..., FileRuns],
) -> None:
    runs = runs_named("same", "same", "same", "same", "other")
    places = {run_id(1): HERE, run_id(2): HERE, run_id(3): IN_PROJECT, run_id(4): ELSEWHERE}
    assert find_run("same", runs, nearness=places.__getitem__) == run_id(2)
    places |= {run_id(1): ELSEWHERE, run_id(2): IN_PROJECT}
    assert find_run("same", runs, nearness=places.__getitem__) == run_id(3)


def test_a_run_of_an_archive_never_takes_the_name_of_an_own_one(runs_named: Callable[..., FileRuns]) -> None:
    runs = runs_named("same", "same", "same")
    places = {run_id(1): IN_PROJECT, run_id(2): IMPORTED, run_id(3): IMPORTED}
    assert find_run("same", runs, nearness=places.__getitem__) == run_id(1)
    places |= {run_id(1): ELSEWHERE}
    assert find_run("same", runs, nearness=places.__getitem__) == run_id(3), "the newest of the archive's"


def test_of_runs_that_lie_elsewhere_none_is_chosen_and_each_is_listed_with_age_and_state(home: StoreHome) -> None:
    ids = [make_run_id(time.time_ns() // 1_000_000 - ago_ms, 1) for ago_ms in (7_200_000, 180_000)]
    made = [make_result(name="same", state=state) for state in (RunState.FAILED, RunState.COMPLETE)]
    results = zip(ids, made, strict=True)
    runs = stored(home, *(result.model_copy(update={"run_id": one}) for one, result in results))
    with pytest.raises(AmbiguousRun) as caught:
        find_run("same", runs, nearness=lambda _: ELSEWHERE)
    assert str(caught.value).splitlines()[1:] == [
        f"  {ids[1]}  same  complete, 3 min ago",
        f"  {ids[0]}  same  failed, 2 h ago",
    ]


def test_a_generated_name_means_the_run_whose_id_it_ends_in(runs_named: Callable[..., FileRuns]) -> None:
    name = f"scout-{short_id(run_id(1))}"
    assert find_run(name, runs_named(name, name), nearness=lambda _: HERE) == run_id(1)


def test_a_prefix_that_many_runs_have_lists_eight_and_counts_the_rest(runs_named: Callable[..., FileRuns]) -> None:
    runs = runs_named(*(f"n{n}" for n in range(12)))
    with pytest.raises(AmbiguousRun) as caught:
        find_run(run_id(1)[:10], runs)
    assert str(caught.value).count("r-") == 9  # the prefix itself and eight rows
    assert "and 4 more" in str(caught.value)


def test_a_prefix_shorter_than_eight_characters_is_refused(runs_named: Callable[..., FileRuns]) -> None:
    with pytest.raises(UnknownRun, match="too short: give at least 8"):
        find_run(run_id(1)[:7], runs_named("one"))


@pytest.mark.parametrize("text", ["", "  ", "..", "../x", "a/b", "a\\b", "a\0b", "a\nb", "/etc/passwd", "r-../../x"])
def test_a_text_with_path_parts_meets_no_path(text: str, runs_named: Callable[..., FileRuns]) -> None:
    with pytest.raises(UnknownRun, match="can't be a run id or name"):
        find_run(text, runs_named("one"))


def test_an_unknown_id_and_an_unknown_name_say_where_to_look(runs_named: Callable[..., FileRuns]) -> None:
    runs = runs_named("one")
    for text in (run_id(9), "nobody"):
        with pytest.raises(UnknownRun, match="%subagent_status"):
            find_run(text, runs)


def test_a_run_that_cannot_be_read_is_still_found_by_its_id(home: StoreHome) -> None:
    home.run(run_id(1)).root.mkdir()
    home.run(run_id(1)).status.write_bytes(b"{")
    assert find_run(run_id(1), FileRuns(home)) == run_id(1)


def test_a_run_below_another_one_is_named_by_its_path_there(runs_named: Callable[..., FileRuns]) -> None:
    runs = runs_named("root", "leaf")
    leaf = find_run("leaf", runs)
    path = runs.home.run(find_run("root", runs)).result
    said = json.loads(path.read_text())
    said["tree"] = [{"path": "mid/leaf", "run_id": leaf, "agent": "leaf"}]
    path.write_text(json.dumps(said))
    assert find_run("root/mid/leaf", runs) == leaf
    with pytest.raises(UnknownRun, match="Run root has no run 'mid/other' below it: below it are mid/leaf"):
        find_run("root/mid/other", runs)
    with pytest.raises(UnknownRun, match="Run leaf has no run 'x' below it: it has none below it"):
        find_run("leaf/x", runs)
