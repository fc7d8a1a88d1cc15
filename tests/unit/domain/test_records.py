"""What stands of a run while it lives and when it has ended: one head, and on disk the order that it always had."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel
from support import make_result, make_status

from subagents_nb.domain.runs.postmortem import Verdict
from subagents_nb.domain.runs.records import RunHead, RunResult, RunStatus, StepHead, StepRecord, StepResult, StepStatus
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.values.base import Document, Value
from subagents_nb.store.files.codec import decode, encode

STORE = Path(__file__).parents[2] / "fixtures" / "store-v1" / "runs"
ORDERS = {
    StepStatus: "index agent model state started_s ended_s usage tools refusals tail tail_end activity error label "
    "goal description phase output_name stopping tool_limit carried_from "
    "requested selected context_tokens context_window lane skills mcp",
    RunStatus: "schema_version kind run_id seq state name mode goal description phase digest runner queue_keeper lacks "
    "started_at updated_at elapsed_s timeout_s usage steps stopping draining attention questions answers waited_s "
    "retunes steering notes stages pending_appends fan_out_used budget usage_budget reason error waits tree lane "
    "workflow workflow_key",
    StepResult: "index agent model state text text_file has_value value usage refusals tools reason error label goal "
    "description phase output_name session saved acceptance worktree started_s ended_s recorded cut carried_from "
    "requested selected context_tokens context_window lane skills mcp",
    RunResult: "schema_version kind run_id state name mode goal description phase digest reason actor error started_at "
    "ended_at elapsed_s timeout_s usage steps waited_s retunes resumed_from changed_files changed_meanwhile open_tools "
    "artifacts tail notes stages answer outputs budget usage_budget reads tree lane workflow workflow_key",
}
KINDS: dict[str, type[Document]] = {"status.json": RunStatus, "result.json": RunResult, "verdict.json": Verdict}


@pytest.mark.parametrize("kind", ORDERS, ids=lambda kind: kind.__name__)
def test_the_fields_are_written_in_the_order_of_the_first_version(kind: type[BaseModel]) -> None:
    # A reader finds in half the time what stands byte for byte as it would write it: another order costs each list.
    assert " ".join(kind.model_fields) == ORDERS[kind]


@pytest.mark.parametrize("document", [make_status(), make_result()], ids=lambda document: document.kind)
def test_what_is_written_has_that_order(document: Document) -> None:
    there = list(json.loads(encode(document)))
    assert there == [name for name in ORDERS[type(document)].split() if name in there]


@pytest.mark.parametrize("path", sorted(STORE.rglob("*.json")), ids=lambda path: str(path.relative_to(STORE)))
def test_a_stored_document_is_written_again_with_the_same_keys_in_the_same_order(path: Path) -> None:
    place = path.relative_to(STORE).parts
    kind = StepRecord if len(place) == 4 and path.name == "result.json" else KINDS.get(path.name)
    if kind is None:
        return
    before = json.loads(path.read_bytes())
    after = json.loads(encode(decode(path.read_bytes(), kind, place[0])))
    assert pruned(after, before) == json.dumps(before)


def pruned(after: object, before: object) -> str:
    """Return `after` as JSON without what the first version did not write."""

    def walk(new: object, old: object) -> object:
        if isinstance(new, dict) and isinstance(old, dict):
            return {name: walk(value, old[name]) for name, value in new.items() if name in old}
        if isinstance(new, list) and isinstance(old, list):
            return [walk(*pair) for pair in zip(new, old, strict=True)]
        return new

    return json.dumps(walk(after, before))


def test_a_document_that_inherits_has_to_say_where_each_of_its_fields_stands() -> None:
    with pytest.raises(TypeError, match=r"Longer is not written whole: \['more'\]"):

        class Longer(Value):
            _ON_DISK = "one"
            one: int = 1
            more: int = 2


def test_every_model_can_be_built_though_most_are_only_when_they_are_used() -> None:
    """By nothing but what is imported: when a run ends its watcher may have no descriptor left to import by."""
    code = (
        "import subagents_nb.runner.main as main, subagents_nb.launching, json\n"
        "from subagents_nb.domain.values.base import Ordered, build_models\n"
        "def all_of(model): return [model, *(deep for one in model.__subclasses__() for deep in all_of(one))]\n"
        "before = [model.__name__ for model in all_of(Ordered) if model.__pydantic_complete__]\n"
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        "build_models()\n"
        "left = [model.__name__ for model in all_of(Ordered) if not model.__pydantic_complete__]\n"
        "print(len(before), len(all_of(Ordered)), left)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    built, models, left = said.split(maxsplit=2)
    assert left.strip() == "[]"
    assert int(built) < int(models) / 4, "what is imported is built at once again"


def test_a_result_begins_with_the_head_of_the_status() -> None:
    status = make_status(notes=("said",), budget="soft-reached", waited_s=2.0)
    assert RunResult(**status.head(), ended_at="2026-01-01T00:00:00Z").head() == status.head()
    assert set(status.head()) == set(RunHead.model_fields) - {"kind"}
    step = status.steps[0]
    assert StepResult(**step.head()).head() == step.head()
    assert set(step.head()) == set(StepHead.model_fields)


def test_a_snapshot_chooses_between_result_and_status_once() -> None:
    status, result = make_status(waited_s=1.0), make_result(waited_s=2.0)
    assert Snapshot(run_id=status.run_id, status=status).head is status
    assert Snapshot(run_id=status.run_id, status=status, result=result).head is result
    assert Snapshot(run_id=status.run_id).head is None
