"""Random chains: planned, carried out by the twin, and held against what chains promise."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.runner.flows import Carried, overlap, plan_flow, write_script

from subagents_nb import chain, expand, parallel, step
from subagents_nb.domain.plans.flow import Chain
from subagents_nb.domain.runs.records import RunResult, StepResult
from subagents_nb.domain.runs.states import RunState, StepState
from subagents_nb.store import FileRuns, open_home
from subagents_nb.store.waiting.admissions import budget_used

ARRAY = {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}
LIMIT = 12
FAILS = 1 / 6


@st.composite
def flows(draw: st.DrawFn) -> Chain:
    """Return a chain whose references all resolve. Failures may happen in any place."""
    names: list[str] = []
    arrays: list[str] = []
    numbers = itertools.count()

    def one(*, first: bool = False, named: bool = True, item: bool = False) -> Any:
        parts = [f"s{next(numbers)}"]
        if names and draw(st.booleans()):
            parts.append("{outputs." + draw(st.sampled_from(names)) + "}")
        if not first and draw(st.booleans()):
            parts.append("{previous}")
        if item:
            parts.append("{item}")
        model = draw(st.sampled_from(["scripted:echo"] * 5 + ["scripted:fail"]))
        fields: dict[str, Any] = {"model": model}
        if named and not item and draw(st.booleans()):
            fields["as_"] = f"n{next(numbers)}"
        if not item and draw(st.integers(0, 3)) == 0:
            fields |= {"schema": ARRAY, "model": f"scripted:array{draw(st.integers(0, 4))}"}
        return step("scout", " ".join(parts), **fields)

    items: list[Any] = []
    for place in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["step", "step", "group", *(["fan"] if arrays else [])]))
        made: list[Any] = []
        keeps = draw(st.sampled_from(["stop", "continue"]))
        if kind == "step":
            items.append(one(first=place == 0))
            made = [items[-1]]
        elif kind == "group":
            steps = [one(first=place == 0) for _ in range(draw(st.integers(1, 3)))]
            concurrency = draw(st.integers(1, 4))
            items.append(parallel(*steps, concurrency=concurrency, fail_fast=draw(st.booleans()), on_failure=keeps))
            made = steps
        else:
            name = f"n{next(numbers)}"
            source = draw(st.sampled_from(arrays))
            concurrency = draw(st.integers(1, 3))
            items.append(
                expand(source, "/a", one(item=True), max_items=4, as_=name, concurrency=concurrency, on_failure=keeps)
            )
            names.append(name)
        names.extend(s.as_ for s in made if s.as_)
        arrays.extend(s.as_ for s in made if s.as_ and s.output_schema is not None)
    return chain(*items)


def carried_out(flow: Chain, root: Path) -> tuple[Carried, RunResult]:
    work = root / "work"
    work.mkdir()
    for size in range(5):
        write_script(work, f"array{size}", {"value": {"a": list(range(size))}})
    carried = Carried(open_home(root / "store"), plan_flow(work, flow, max_children=LIMIT))
    return carried, carried.carry_out()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(flow=flows())
def test_any_chain_keeps_its_promises(flow: Chain) -> None:
    with tempfile.TemporaryDirectory() as folder:
        carried, result = carried_out(flow, Path(folder))
        steps = {one.index: one for one in result.steps}
        expect_references(result, steps)
        expect_order(carried, result, steps)
        used = budget_used(carried.writer.paths)
        assert used is not None and used[0] <= LIMIT
        assert sum(one.started_s is not None for one in result.steps) <= used[0]
        expect_agreement(carried, result, steps)


def expect_references(result: RunResult, steps: dict[int, StepResult]) -> None:
    """Every task that was begun had all its tokens filled in."""
    for one in steps.values():
        if one.state is StepState.COMPLETE and not one.has_value:
            assert "{outputs." not in one.text and "{previous}" not in one.text and "{item}" not in one.text
    for output in result.outputs.values():
        assert output.step is None or steps[output.step].state is StepState.COMPLETE


def expect_order(carried: Carried, result: RunResult, steps: dict[int, StepResult]) -> None:
    """No stage begins before all of the one before it have ended; none is wider than it may be."""
    before = 0.0
    for stage in result.stages:
        held = [steps[index] for index in stage.steps]
        began = [one.started_s for one in held if one.started_s is not None]
        assert all(at >= before for at in began)
        assert began == sorted(began)
        if stage.concurrency is not None:
            assert overlap(held) <= stage.concurrency
        before = max([before, *(one.ended_s or 0.0 for one in held if one.started_s is not None)])
    assert carried.plan.mode == result.mode


def expect_agreement(carried: Carried, result: RunResult, steps: dict[int, StepResult]) -> None:
    """Status, result, stages and events tell the same story."""
    status = FileRuns(carried.home).snapshot(carried.plan.run_id, whole=True).status
    assert status is not None
    assert {s.index: s.state for s in status.steps} == {i: s.state for i, s in steps.items()}
    assert status.stages == result.stages
    held = [index for stage in result.stages for index in stage.steps]
    assert sorted(held) == sorted(steps) and len(set(held)) == len(held)
    ended = [e["step"] for e in carried.events() if e["type"] == "step-ended"]
    assert len(ended) == len(set(ended))
    states = {one.state for one in steps.values()}
    assert states <= {StepState.COMPLETE, StepState.FAILED, StepState.SKIPPED}
    went_well = states <= {StepState.COMPLETE} and result.reason != "fan-out"
    assert (result.state is RunState.COMPLETE) == went_well


def test_a_stopped_child_stops_alone_wherever_it_stands(tmp_path: Path) -> None:
    for victim in range(4):
        root = tmp_path / str(victim)
        work = root / "work"
        work.mkdir(parents=True)
        nap = write_script(work, "nap", {"sleep": 0.25}, {"text": "ok"})
        models = [nap if n != victim else "scripted:hang" for n in range(4)]
        group = parallel(*[step("scout", str(n), model=model) for n, model in enumerate(models)], concurrency=2)
        carried = Carried(open_home(root / "store"), plan_flow(work, chain(group)))

        def stop(c: Carried, victim: int = victim) -> bool:
            status = c.look().status
            running = status is not None and status.steps[victim].state is StepState.RUNNING
            return running and bool(c.ask("stop", step=victim))

        result = carried.carry_out(stop)
        assert [str(s.state) for s in result.steps] == ["complete" if n != victim else "stopped" for n in range(4)]
        assert result.state is RunState.PARTIAL
