"""The verbs about agents as such: their files written, copied, switched off and on, judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from subagents_nb.terminal import say

if TYPE_CHECKING:
    from subagents_nb.authoring import AgentChange, Validation
    from subagents_nb.notebook.verbs.call import Call


def create(call: Call) -> AgentChange:
    """Write a new agent file with the text as its prompt."""
    from subagents_nb.authoring import create_agent

    if not call.options.description:
        call.refuse("say what it is for: --description TEXT")
    arguments = call.arguments_for(create_agent)
    return create_agent(arguments.pop("name"), call.text, **arguments)


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


def refine(call: Call) -> Any:
    """Show what was added to an agent's instructions, have more proposed, apply a proposal or take it back."""
    from subagents_nb.authoring import refinement
    from subagents_nb.launching import Run

    asked = call.options
    found = refinement(asked.name, scope=asked.scope)
    if bool(asked.run) + (asked.apply is not None) + asked.rollback > 1:
        call.refuse("propose from runs, apply a proposal or roll back: one at a time")
    if asked.to is not None and not asked.rollback:
        call.refuse("--to says where --rollback goes back to")
    if asked.model is not None and not asked.run:
        call.refuse("--model is that of who proposes: name runs")
    if asked.run:
        runs = [run for one in call.meant() for run in ([one] if isinstance(one, Run) else one)]
        return call.begun(found.propose(*runs, model=asked.model, origin=call.origin))
    if asked.apply is not None:
        return found.apply(call.find(asked.apply))
    return found.rollback(asked.to) if asked.rollback else found


def print_refined(call: Call, found: Any) -> None:
    """Say where the reviewer's run is found, else what there is."""
    from subagents_nb.notebook.verbs.starting import print_begun

    if call.options.run:
        print_begun(call, found)
    else:
        say(repr(found))


def validate(_: Call) -> Validation:
    """Judge every agent file that counts from here."""
    from subagents_nb.authoring import validate_agents

    return validate_agents()
