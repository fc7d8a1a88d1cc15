"""Every agent file of every scope, judged: what of it is carried out, keeps the agent from beginning, is only noted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from subagents_nb.catalog import SettingsProblem, load_settings
from subagents_nb.catalog.agent_files import builtin_files
from subagents_nb.catalog.fields import KEYS
from subagents_nb.catalog.parse import DISABLED, MAX_FILE_BYTES, parse_agent, values_of
from subagents_nb.catalog.scan import scan_path
from subagents_nb.catalog.scopes.packages import package_paths
from subagents_nb.catalog.search_paths import SearchPath, agent_search_paths, project_root
from subagents_nb.catalog.strict_yaml import Lines, StrictYaml, YamlRefused, lines_of
from subagents_nb.domain.agents.agent import AgentDefinition, AgentSource
from subagents_nb.domain.agents.models import PROVIDER_NAMES
from subagents_nb.domain.agents.settings import Settings
from subagents_nb.domain.plans.flow import Step
from subagents_nb.domain.values.faults import snake
from subagents_nb.domain.values.reasons import Reason
from subagents_nb.domain.values.words import one_line
from subagents_nb.launching.gathering.usable_agents import usable_agents
from subagents_nb.planning.steps.foreign_fields import field_notes, guards_of
from subagents_nb.planning.steps.step_plan import agent_notes
from subagents_nb.store.files.opener import read_plain

# An error keeps the file from being an agent; what is refused keeps the agent from beginning; a note changes nothing.
Fate = Literal["error", "refused", "noted"]
_YAML = StrictYaml()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is to be known of a file."""

    fate: Fate
    text: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class FileReport:
    """One file: what stands in it, and what becomes of that."""

    where: str
    source: AgentSource
    name: str | None = None
    carried_out: tuple[str, ...] = ()  # the keys, as written
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the agent can be launched, as far as its file goes."""
        return not any(finding.fate in ("error", "refused") for finding in self.findings)


@dataclass(frozen=True, slots=True, repr=False)
class Validation:
    """All files that were looked at, in the order of their priority, the lowest first."""

    files: tuple[FileReport, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is in the way of any agent."""
        return all(one.ok for one in self.files)

    def __repr__(self) -> str:
        return "\n".join(line for one in self.files for line in _lines(one)) or "There are no agent files."


def validate_agents(cwd: str | os.PathLike[str] | None = None) -> Validation:
    """Read every agent file that counts from `cwd`, built-in ones too, and the settings that speak of agents.

    Nothing about the files raises: what is wrong with them is what is returned.
    """
    here = Path(cwd) if cwd is not None else Path.cwd()
    reports = [examine(data, where=where, source="builtin") for where, data in builtin_files().items()]
    for place in (*package_paths(), *agent_search_paths(project_root(here), cwd=here)):
        reports += _examine_path(place)
    return Validation((*reports, *_whole(here, {report.where for report in reports})))


def _examine_path(place: SearchPath) -> Iterator[FileReport]:
    scan = scan_path(place)
    for problem in scan.problems:
        yield FileReport(problem.where, problem.source, findings=(Finding("error", problem.error),))
    for path, where in scan.files:
        try:
            data = read_plain(path, MAX_FILE_BYTES, within=place.root)
        except OSError as error:
            why = f"the file can't be read: {error.strerror or error}"
            yield FileReport(where, place.source, findings=(Finding("error", why),))
        else:
            yield examine(data, where=where, source=place.source)


def _whole(here: Path, seen: set[str]) -> Iterator[FileReport]:
    """Yield what is seen only of all together: settings, names that a project may not take."""
    settings = Settings()
    try:
        settings = load_settings(here, environ=os.environ, reserved=PROVIDER_NAMES)
    except SettingsProblem as problem:
        for reason in problem.reasons:
            place, text = (reason.place, reason.text) if isinstance(reason, Reason) else ("settings", str(reason))
            yield FileReport(place, "user", findings=(Finding("error", text),))
    for found in usable_agents(here, settings).problems:
        if found.disabled or found.withheld or found.where not in seen:
            fate: Fate = "noted" if found.disabled else "refused"
            yield FileReport(found.where, found.source, found.name, findings=(Finding(fate, found.error),))


def examine(data: bytes, *, where: str, source: AgentSource) -> FileReport:
    """Judge the content of one file."""
    try:
        text = data.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        why = f"the file is not UTF-8 (byte {error.start + 1})"
        return FileReport(where, source, findings=(Finding("error", why),))
    parsed = parse_agent(text, where=where, source=source)
    try:
        sections = _YAML.sections(text.lstrip())
        above = text.count("\n", 0, len(text) - len(text.lstrip())) + (sections[2] if sections else 0)
        written = _YAML.load_plain(sections[0], lines_above=above) if sections else {}
    except YamlRefused as error:
        return FileReport(where, source, findings=(Finding("error", error.problem, error.line),))
    if isinstance(parsed, AgentDefinition):
        lines = lines_of(sections[0] if sections else "", lines_above=above)
        return _agent(parsed, written, lines, where=where, source=source)
    if parsed is None:
        missing = " and ".join(key for key in ("name", "description") if not str(written.get(key) or "").strip())
        why = f"it is no agent: it has no {missing}" if sections else "it is no agent: it has no frontmatter"
        return FileReport(where, source, findings=(Finding("noted", why),))
    lines = lines_of(sections[0] if sections else "", lines_above=above)
    _, reasons = values_of(written)
    findings = tuple(
        Finding(
            "noted" if reason.code == DISABLED else "error",
            str(reason),
            lines.get(reason.path[:1]) if reason.path else None,
        )
        for reason in reasons
    )
    return FileReport(where, source, parsed.name, findings=findings or (Finding("error", parsed.error),))


def _agent(
    agent: AgentDefinition, written: dict[str, object], lines: Lines, *, where: str, source: AgentSource
) -> FileReport:
    guards = guards_of(agent)
    carried = tuple(key for key in written if snake(key) in KEYS and key not in agent.extra)
    others = [key for key in written if key not in carried and key not in guards]
    tools = next((lines.get((key,)) for key in carried if snake(key) == "tools"), None)
    missing = agent.extra.get("unsupported_tools")
    findings = [
        Finding("refused", f"`{key}` guards {what} elsewhere and is not carried out here", lines.get((key,)))
        for key, what in guards.items()
    ]
    findings += [Finding("noted", f"`{key}` is not carried out", lines.get((key,))) for key in others]
    if isinstance(missing, list):
        findings.append(Finding("noted", f"tools that are not there: {', '.join(map(str, missing))}", tools))
    own = agent.model_copy(update={"extra": {}})
    findings += [Finding("noted", note) for note in (*agent_notes(own), *field_notes(Step(), own))]
    ordered = sorted(findings, key=lambda finding: finding.line or 10**6)
    return FileReport(where, source, agent.name, carried, tuple(ordered))


def _lines(report: FileReport) -> Iterator[str]:
    fates = {finding.fate for finding in report.findings}
    state = "broken" if "error" in fates else "refused" if "refused" in fates else "ok"
    if report.name is None and "noted" in fates and state == "ok":
        state = "no agent"
    yield f"{report.where} ({report.source}): {state}"
    for finding in report.findings:
        yield f"  {f'line {finding.line}: ' if finding.line else ''}{finding.fate}: {one_line(finding.text, 400)}"
    if report.carried_out and report.findings:
        yield f"  carried out: {', '.join(report.carried_out)}"
