"""The live view's kernel half: traits that the page reads, and the way of what the page asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from subagents_nb.notebook.page.assets import asset, joined

Reply = Callable[[dict[str, Any]], None]


def synced(trait: Any) -> Any:
    """Return a trait that a page is told, and only the kernel sets: code and pages may read and observe it."""
    trait.read_only = True
    return trait.tag(sync=True)


class PageWidget(anywidget.AnyWidget):
    """What a page hears of, and may send messages to: each goes to `on_message`, with the way of an answer.

    A `model_id` is the token by which a page finds it.
    """

    def __init__(self, on_message: Callable[[Any, Reply], None], model_id: str = "", **state: Any) -> None:
        for name, value in state.items():
            self.set_trait(name, value)
        super().__init__(**({"model_id": model_id} if model_id else {}))
        heed_the_sender(self.comm)
        self._on_message = on_message
        self.on_msg(lambda _widget, content, _buffers: self._on_message(content, self.send))

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what a page says, but for what only the kernel says."""
        traits = self.traits()
        theirs = {name: value for name, value in sync_data.items() if name in traits and not traits[name].read_only}
        super().set_state(theirs)

    def dispose(self) -> None:
        """Close it and its layout, which would stay in ipywidgets' registry: jupyter-widgets/ipywidgets#2308."""
        layout = getattr(self, "layout", None)
        if layout is not None:
            layout.close()
        self.close()


class RunWidget(PageWidget):
    """One run on the page. The traits are the contract with widgets/view.js."""

    _esm = joined(*map(asset, ("beat.js", "dom.js", "asks.js", "stand.js", "tree.js", "view.js", "run.js")))
    _css = asset("run.css")

    run_id = synced(traitlets.Unicode(""))
    name = synced(traitlets.Unicode(""))
    agent = synced(traitlets.Unicode(""))
    model = synced(traitlets.Unicode(""))
    state = synced(traitlets.Unicode("queued"))
    elapsed_s = synced(traitlets.Float(0.0))
    deadline_s = synced(traitlets.Float(None, allow_none=True))
    tokens_in = synced(traitlets.Int(0))
    tokens_out = synced(traitlets.Int(0))
    cost = synced(traitlets.Unicode(""))
    tool_calls = synced(traitlets.Int(0))
    tool_limit = synced(traitlets.Int(None, allow_none=True))
    spend = synced(traitlets.Unicode(""))  # of a usage budget: what was used of what
    spent = synced(traitlets.Float(None, allow_none=True))  # and how much of the whole that is
    refusals = synced(traitlets.Int(0))
    tools = synced(traitlets.List(traitlets.Dict()))
    tail = synced(traitlets.Unicode(""))
    tail_end = synced(traitlets.Int(0))
    silent = synced(traitlets.Unicode(""))  # for what it waits that has written nothing yet
    note = synced(traitlets.Unicode(""))
    reused = synced(traitlets.Unicode(""))
    error = synced(traitlets.Unicode(""))
    reason = synced(traitlets.Unicode(""))
    stopping = synced(traitlets.Bool(False))
    questions = synced(traitlets.List(traitlets.Dict()))
    attention = synced(traitlets.Unicode(""))
    waited_s = synced(traitlets.Float(0.0))
    beat = synced(traitlets.Int(0))
    graph = synced(traitlets.Dict())  # of a chain; empty otherwise
    tree = synced(traitlets.List(traitlets.Dict()))  # the runs below it
    fresh = synced(traitlets.Dict())  # what was written since the last of them: text, and where it begins
    token = synced(traitlets.Unicode(""))  # the class of the plain output before which it stands; the model's id
    version = synced(traitlets.Int(0))  # above 0: the plain output has been published anew

    def __init__(self, state: dict[str, Any], *, on_request: Callable[[Any, Reply], None], token: str = "") -> None:
        self.missing: Callable[[], dict[str, Any]] = dict  # what a page that is loaded anew must be told besides
        super().__init__(on_request, token, token=token, **state)

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> Any:
        """Return the traits; as a whole with what went out piece by piece since."""
        state = super().get_state(key, drop_defaults)
        return {**state, **self.missing()} if key is None else state


class FinderWidget(PageWidget):
    """Finds the runs on a page: what an earlier kernel left there, and where one can be opened in full."""

    _esm = joined(*map(asset, ("dom.js", "place.js", "stand.js", "finder.js")))
    _css = asset("run.css")

    def __init__(self, on_found: Callable[[Any], None]) -> None:
        super().__init__(lambda content, _: on_found(content))


class ChainWidget(RunWidget):
    """A chain on the page: a run with its stages. Runs of one step never load what it needs besides."""

    _esm = joined(
        *map(
            asset, ("beat.js", "dom.js", "asks.js", "graph.js", "stand.js", "step.js", "tree.js", "view.js", "chain.js")
        )
    )
    _css = "\n".join(map(asset, ("run.css", "chain.css")))


def heed_the_sender(comm: Any) -> Any:
    """Let each message of a page be handled where the page sent it, and return the comm.

    A page names the subshell that shall handle its message, jupyterlab/jupyterlab#17363. ipykernel 7.4 prefers the one
    whose message was being handled when the kernel last sent on the comm. What a thread of ours sends belongs to none,
    and takes the last of anybody: often that of a second tab, which is gone a moment later. From then on all that any
    page sends here ends in "Unknown subshell_id", ipython/ipykernel#1557. Our comms wait for no reply: nothing is lost.
    """
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = _where_sent
    return comm


def _where_sent(_data: object, subshell: str | None) -> str | None:
    return subshell
