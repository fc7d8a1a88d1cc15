"""The verbs about agents as such: their files written, copied, switched off and on, judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subagents_nb.authoring import AgentChange, Validation
    from subagents_nb.notebook.verbs.call import Call


def create(call: Call) -> AgentChange:
    """Write a new agent file with the text as its prompt."""
    from subagents_nb.authoring import create_agent

    if not call.options.description:
        call.refuse("say what it is for: --description TEXT")
    said = call.said_of(create_agent)
    return create_agent(said.pop("name"), call.text, **said)


def eject(call: Call) -> AgentChange:
    """Copy a built-in or installed agent to where it can be edited."""
    from subagents_nb.authoring import eject_agent

    return eject_agent(call.options.name, scope=call.options.scope)


def enable(call: Call) -> AgentChange:
    """Take back that an agent was disabled."""
    from subagents_nb.authoring import enable_agent

    return enable_agent(call.options.name, scope=call.options.scope)


def disable(call: Call) -> AgentChange:
    """Let an agent be launched no more."""
    from subagents_nb.authoring import disable_agent

    return disable_agent(call.options.name, scope=call.options.scope)


def validate(_: Call) -> Validation:
    """Judge every agent file that counts from here."""
    from subagents_nb.authoring import validate_agents

    return validate_agents()
