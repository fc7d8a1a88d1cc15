"""What a person asks for at a launch, before anything was looked up."""

from __future__ import annotations

from typing import Any, Literal

from subagents_nb.domain.plans.experiments import ExperimentPart
from subagents_nb.domain.plans.flow import Chain, Step, StepOptions
from subagents_nb.domain.plans.inputs import InputRecord
from subagents_nb.domain.plans.options import OPTIONS
from subagents_nb.domain.values.base import Value
from subagents_nb.domain.values.given import Time, Whole

# What a launch says of the run, and its one step need not hold as well.
_OF_THE_RUN = frozenset(one.name for one in OPTIONS if one.scope == "each" and one.kind != "remark")


class Origin(Value):
    """Where a launch was asked for; nothing here is a secret, an absolute path or a host name."""

    surface: Literal["magic", "python", "cli", "test"] = "python"
    session: str = ""  # one kernel, one value: who is told when the run ends
    notebook: str | None = None  # relative to the project
    cell_id: str | None = None
    source_sha256: str | None = None  # of the cell
    # Of a run that another one started: that one, the root of their tree, and the way from there, as `scout/worker-2`.
    parent: str | None = None
    root: str | None = None
    path: str = ""
    # How long a permission is waited for there; 0: nobody can be asked.
    ask_timeout_s: float | None = None

    @property
    def level(self) -> int:
        """Return how many levels below its root a run stands."""
        return self.path.count("/") + 1 if self.path else 0


class LaunchRequest(StepOptions):
    """What a person asks for, before anything was looked up. Texts are verbatim."""

    task: str
    as_: str | None = None  # how a single step calls its output
    name: str | None = None
    workflow: str | None = None  # for people, and to be found by: what it belongs to in a workflow elsewhere
    workflow_key: str | None = None
    usage_budget: Any = None
    max_children: Whole | None = None  # the fan-out budget of the run
    inputs: tuple[InputRecord, ...] = ()  # values of the notebook, made into files already
    experiment: ExperimentPart = ExperimentPart()
    flow: Chain | None = None  # then `task` and the options of a step are what its steps leave open
    tags: tuple[str, ...] = ()
    origin: Origin = Origin()

    def as_single_step(self) -> Step:
        """Return the one step of a launch that is no chain; its deadline, checkpoint and directory are the run's."""
        options = {name: getattr(self, name) for name in StepOptions.model_fields.keys() - _OF_THE_RUN}
        return Step(task=self.task, as_=self.as_, **options)


class Revival(Value):
    """What a person asks for when an ended run shall go on."""

    text: str
    name: str | None = None
    timeout: Time | None = None
    max_requests: Whole | None = None
    usage_budget: Any = None  # False: none
    origin: Origin = Origin()
