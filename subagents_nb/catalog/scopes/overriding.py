"""Agents as settings have them: the nearer file outranks, and a project may only narrow what it did not bring. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from subagents_nb.catalog.tool_lists import of_servers
from subagents_nb.domain.agents.acting import LOOK, Acting, Trust
from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition, AgentProblem
from subagents_nb.domain.agents.mcp_servers import McpServer
from subagents_nb.domain.agents.models import script_meant
from subagents_nb.domain.agents.override import AgentOverride
from subagents_nb.domain.plans.options import OPTIONS
from subagents_nb.domain.plans.plan import DEFAULT_DEPTH
from subagents_nb.domain.policy.tool_names import covers
from subagents_nb.domain.values.base import sha256_text, stable_json

# What a project may say of an agent that it did not bring: which model, how hard it thinks, and less of the rest.
_FREE = frozenset({"model", "thinking", "temperature", "disabled", "denied"})
_ADDED = frozenset({"denied", "disabled", "added", "permissions"})  # which take no field's place
_OF_ITS_OWN = ("agents adds", "permissions allow")  # what is asked of an agent too that the project brought
_LIMITS = tuple(one.stored for one in OPTIONS if one.file is not None and one.kind in ("duration", "count"))


def with_overrides(
    catalog: AgentCatalog, overrides: tuple[AgentOverride, ...], trust: Trust, usual: Mapping[str, Any] | None = None
) -> AgentCatalog:
    """Return the catalog as settings have it; the nearer file comes later and outranks.

    `usual` are the limits that hold for an agent which has none, by field.

    An agent that is disabled, or of which a project says what the person has not allowed, can't be named. What this
    process registered is as its code says.
    """
    acting: list[Acting] = []
    by_name: dict[str, list[AgentOverride]] = {}
    for override in overrides:
        by_name.setdefault(override.name, []).append(override)
    agents: list[AgentDefinition] = []
    problems: list[AgentProblem] = []
    for agent in catalog.agents:
        said = by_name.pop(agent.name, []) if agent.source != "registered" else []
        overridden = _overridden(agent, said, trust, acting, usual or {})
        (agents if isinstance(overridden, AgentDefinition) else problems).append(overridden)  # type: ignore[arg-type]
    broken = {problem.name for problem in catalog.problems}
    for name, said in by_name.items():
        if name not in broken and not any(agent.name == name for agent in catalog.agents):
            why = f"[agents.{name}] is for no agent that is there"
            problems += [AgentProblem(where=withheld.origin, source=_source(withheld), error=why) for withheld in said]
    held = (withheld for item in acting if (withheld := trust.held(item)) is not None)
    return catalog.model_copy(
        update={
            "agents": tuple(agents),
            "problems": (*catalog.problems, *problems),
            "acting": (*catalog.acting, *acting),
            "held": (*catalog.held, *held),
        }
    )


def _overridden(
    agent: AgentDefinition,
    overrides: list[AgentOverride],
    trust: Trust,
    acting: list[Acting],
    usual: Mapping[str, Any],
) -> AgentDefinition | AgentProblem:
    disabled_by: AgentOverride | None = None
    strict: set[str] = set()  # what the person's own settings ask for: no project takes it back
    for override in overrides:
        if override.by_project and strict:
            kept = {name: value for name, value in override.fields.items() if name not in strict}
            override = override.model_copy(update={"fields": kept})  # noqa: PLW2901 - what is left of it
        elif not override.by_project:
            asked = {"sandbox": "workspace", "network": False, "disabled": True}
            strict |= {name for name, value in asked.items() if override.fields.get(name) == value}
        where = f"[agents.{agent.name}] in {override.origin}"
        wider = _beyond_trust(agent, override, usual) if override.by_project else ()
        if wider:
            text = "".join(f"{name} = {stable_json(to_jsonable_python(to))}\n" for name, to in override.fields.items())
            files = {override.origin: sha256_text(text)}
            item = Acting(kind="settings", name=f"agents.{agent.name}", does=wider, files=files, text=text)
            acting.append(item)
            if trust.held(item) is not None and agent.source != "project":
                why = f"{where} can't widen what it may do: {', '.join(wider)}; look at it with {LOOK}, which allows it"
                return AgentProblem(where=override.origin, source="project", error=why, name=agent.name)
        if override.fields.get("disabled"):
            disabled_by = override
        elif override.fields.get("disabled") is False:
            disabled_by = None
        agent = _applied(agent, override)
    if disabled_by is None:
        return agent
    why = f"it is disabled by [agents.{agent.name}] in {disabled_by.origin}; %subagent_enable {agent.name} undoes that"
    return AgentProblem(where=agent.where, source=agent.source, error=why, name=agent.name, disabled=True)


def _applied(agent: AgentDefinition, override: AgentOverride) -> AgentDefinition:
    changed = {name: value for name, value in override.fields.items() if name not in _ADDED}
    if added := override.fields.get("added"):
        had = changed.get("tools", agent.effective_tools)
        changed["tools"] = (*had, *(tool for tool in added if not any(covers(one, tool) for one in had)))
    if own := changed.get("mcp_servers"):
        nearer = {_named(one) for one in own}
        changed["mcp_servers"] = (*(one for one in agent.mcp_servers or () if one.name not in nearer), *own)
    for kind, rules in (override.fields.get("permissions") or {}).items():
        if rules:
            changed[kind] = tuple(dict.fromkeys((*(changed.get(kind, getattr(agent, kind)) or ()), *rules)))
    if denied := override.fields.get("denied"):
        had = changed.get("tools", agent.effective_tools)
        changed["tools"] = tuple(tool for tool in had if not any(covers(one, tool) for one in denied))
        if of_servers(denied):
            changed["deny"] = tuple(dict.fromkeys((*(changed.get("deny", agent.deny) or ()), *of_servers(denied))))
    origins = {**dict(agent.overridden), **dict.fromkeys(changed, override.origin)}
    if not changed:
        return agent
    # Read again: settings that were written down and read have plain data where a definition has values.
    return AgentDefinition.model_validate({**dict(agent), **changed, "overridden": tuple(sorted(origins.items()))})


def _named(server: Any) -> str:
    return str(server["name"] if isinstance(server, Mapping) else server.name)


def _started(server: Any) -> str:
    return McpServer.model_validate(server).says  # plain data, if the settings were read back


def _beyond_trust(agent: AgentDefinition, override: AgentOverride, usual: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a project's table lets an agent do that the person would have to allow."""
    wider = tuple(_wider(agent, override.fields, usual))
    if agent.source != "project":
        return wider
    # Its own are the project's to change, but for what acts.
    after = _applied(agent, override)
    more = sorted(set(after.reaches) - set(agent.reaches))
    more += [f"is reviewed by {one}" for one in after.reviewers if one not in agent.reviewers]
    more += [f"verify runs {one}" for one in after.verify_commands if one not in agent.verify_commands]
    return (*(word for word in wider if "a script that" in word or word.startswith(_OF_ITS_OWN)), *more)


def _wider(agent: AgentDefinition, fields: Mapping[str, Any], usual: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an override adds to an agent that the person knows otherwise."""
    for name, value in fields.items():
        match name:
            case "model":
                if script_meant(value) is not None:
                    yield f"model is {value}, a script that makes tool calls"
            case "tools" | "added":
                had = agent.effective_tools
                if more := [tool for tool in value if not any(covers(one, tool) for one in had)]:
                    yield f"tools adds {', '.join(more)}"
            case "permissions":  # what is denied or asked besides is less
                if value.get("allow"):
                    yield f"permissions allow {', '.join(value['allow'])}"
            case "agents":
                known = agent.agents or ()
                if more := [one for one in value if one not in known and "*" not in known]:
                    yield f"agents adds {', '.join(more)}"
            case "sandbox":
                if value == "none" and agent.sandbox == "workspace":
                    yield "sandbox is none"
            case "network":
                if value and not agent.network:
                    yield "network is true"
            case "disabled" if not value:
                yield "disabled is false"
            case "acceptance":
                after = agent.model_copy(update={name: value})
                runs = ", ".join(after.verify_commands)
                yield f"{name} is set: verify runs {runs}" if runs else f"{name} is set"
            case "mcp_servers":
                yield f"{name} is set: starts {', '.join(map(_started, value))}" if value else f"{name} is set"
            case "max_depth":  # no more levels than that whatever an agent names
                levels = DEFAULT_DEPTH if agent.max_depth is None else agent.max_depth
                if min(value, DEFAULT_DEPTH) > levels:
                    yield f"{name} is above {levels}"
            case _ if name in _LIMITS:
                own = getattr(agent, name)
                before = usual.get(name) if own is None else own
                if before is not None and value > before:
                    yield f"{name.removesuffix('_s')} is above {before:g}"
            case _ if name not in _FREE:
                yield f"{name} is set"


def _source(override: AgentOverride) -> Any:
    return "project" if override.by_project else "user"
