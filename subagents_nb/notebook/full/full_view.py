"""The kernel half of a run in full: a widget for each that is open, and what its page may ask of it."""

from __future__ import annotations

import contextvars
import logging
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import traitlets

from subagents_nb.errors import SubagentsError
from subagents_nb.launching import Run
from subagents_nb.notebook.full.entries import entries_of
from subagents_nb.notebook.full.event_pages import PAGE_BYTES, read_page
from subagents_nb.notebook.full.facts import answer_of, facts_of, lineage_of
from subagents_nb.notebook.full.finding import places_of
from subagents_nb.notebook.full.parts import parts_of, window_of
from subagents_nb.notebook.full.said import SaidInRun
from subagents_nb.notebook.page.assets import asset, joined
from subagents_nb.notebook.views.page_requests import PageRequests
from subagents_nb.notebook.views.widget import PageWidget, synced
from subagents_nb.supervisor.processes.process_load import load_of

_AT_ONCE = 8  # that are open; the one that was opened first is closed
_LAST_STEP = 99_999
_MOST_CHARS = 400  # of what is searched for
_TOKEN = re.compile(r"f[0-9a-f]{8,32}")
_log = logging.getLogger(__name__)

Reply = Callable[[dict[str, Any]], None]


class FullWidget(PageWidget):
    """A run in full on the page. The traits are the contract with widgets/opened.js."""

    _esm = joined(*map(asset, ("beat.js", "dom.js", "asks.js", "stand.js", "place.js", "entry.js", "opened.js")))
    _css = "\n".join(map(asset, ("run.css", "opened.css")))

    run_id = synced(traitlets.Unicode(""))
    told = synced(traitlets.Dict())  # what it shows first
    token = synced(traitlets.Unicode(""))  # the class of its place; the model's id
    version = synced(traitlets.Int(0))


class OpenRuns:
    """The runs that are open in full on a page, by the tokens of their places."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._widgets: dict[str, FullWidget] = {}

    def hear(self, run: Run, content: dict[str, Any]) -> None:
        """Open a run, or a step of it, if that is what a message of a page asks."""
        token, step = _token(content), content.get("step")
        if content.get("kind") != "full" or not token:
            return
        if step is None or (type(step) is int and 0 <= step <= _LAST_STEP):
            in_background(lambda: self._open(run, token, step))

    def shut(self, content: dict[str, Any]) -> None:
        """Close what a page has closed."""
        with self._guard:
            widget = self._widgets.pop(_token(content), None)
        if widget is not None:
            widget.dispose()

    def _open(self, run: Run, token: str, step: int | None) -> None:
        if token in self._widgets:  # a message that was sent twice
            return
        answers = FullRequests(run, step)
        told = answers.whole()
        with self._guard:
            if token in self._widgets:
                return
            self._widgets[token] = FullWidget(answers.hear, token, token=token, run_id=run.id, told=told)
            old = [self._widgets.pop(one) for one in list(self._widgets)[:-_AT_ONCE]]
        for one in old:
            one.dispose()

    def leave(self) -> None:
        """Close all of them."""
        for token in list(self._widgets):
            self.shut({"token": token})


OPEN = OpenRuns()


def leave_all() -> None:
    """Close what is open in full."""
    OPEN.leave()


class FullRequests:
    """Answers one page: reads what it asks for, off the kernel's own threads; all else goes to the run."""

    def __init__(self, run: Run, step: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._run, self._step, self._clock = run, step, clock
        self._asks = PageRequests(run)
        self._said = SaidInRun(run.home.run(run.id))
        self._relatives: list[dict[str, str]] = []
        self._load: tuple[float, float] | None = None  # when, and how much processor time there had been

    def hear(self, content: object, reply: Reply) -> None:
        """Take a message of the page."""
        if not isinstance(content, dict):
            return
        kind = content.get("kind")
        answers: dict[Any, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "look": self._look, "page": self._page, "part": self._part, "find": self._find,
        }  # fmt: skip
        if kind in ("full", "shut"):
            related, run_id = {one["run"] for one in self._relatives if one["run"]}, content.get("run")
            if kind == "shut":
                OPEN.shut(content)
            elif isinstance(run_id, str) and run_id in related:
                OPEN.hear(Run(self._run.home, run_id), content)
        elif kind in answers:
            in_background(lambda: reply(_safely(answers[kind], content)))
        else:
            self._asks.on_message(content, reply)

    def whole(self) -> dict[str, Any]:
        """Return what is shown first: what is said of the run, the beginning of what it did, and its end."""
        first = _safely(lambda _: self.page(0), {})
        size = int(first.get("size", 0))
        last = size - PAGE_BYTES if size > 2 * PAGE_BYTES else int(first.get("to", 0))
        pages = [first]
        if last < size:
            pages.append(_safely(lambda _: self.page(last), {}))
        return {"head": _safely(lambda _: self.head(lineage=True), {}), "pages": pages}

    def head(self, *, lineage: bool = False) -> dict[str, Any]:
        """Return what is said of the run as it stands now."""
        facts = facts_of(self._run, self._step)
        if self._step is None and (lineage or not facts["live"]):
            self._relatives = lineage_of(self._run)
        return {"kind": "head", **facts, "lineage": self._relatives, "load": self._loaded() if facts["live"] else ""}

    def page(self, begin: int) -> dict[str, Any]:
        """Return a page of what it did, from a byte of its events on."""
        page = read_page(self._run.home.run(self._run.id), begin)
        folded = entries_of(page.records, self._said, step=self._step)
        # A stream that may go on is read again from its beginning, unless it fills a page by itself.
        goes_on = folded.open_at is not None and page.end - folded.open_at < PAGE_BYTES // 4 and page.end >= page.size
        return {
            "kind": "page",
            "from": page.begin,
            "to": page.end,
            "next": folded.open_at if goes_on else page.end,
            "size": page.size,
            "entries": [one.row() for one in folded.entries],
            "ends": folded.ends,
        }

    def _look(self, content: dict[str, Any]) -> dict[str, Any]:
        return {**self.head(), "page": self.page(_place(content, "at"))}

    def _page(self, content: dict[str, Any]) -> dict[str, Any]:
        return self.page(_place(content, "at"))

    def _part(self, content: dict[str, Any]) -> dict[str, Any]:
        at, begin = content.get("at"), _place(content, "from")
        if at == -1:
            return {"kind": "part", "at": -1, "parts": [window_of(answer_of(self._run, self._step), begin)]}
        name = content.get("name")
        begins = {name: begin} if isinstance(name, str) else {}
        parts = parts_of(self._run, _place(content, "at"), begins, _phrase(content))
        return {"kind": "part", "at": at, "parts": [one for one in parts if not begins or one["name"] == name]}

    def _find(self, content: dict[str, Any]) -> dict[str, Any]:
        phrase = _phrase(content)
        return {"kind": "found", "text": phrase, "places": places_of(self._run, phrase, self._step) if phrase else []}

    def _loaded(self) -> str:
        status = self._run.status.status
        load = load_of(status.runner) if status is not None and status.runner is not None else None
        if load is None:
            return ""
        now, before = self._clock(), self._load
        self._load = now, load.cpu_s
        share = ""
        if before is not None and now > before[0]:
            share = f"{max(0.0, load.cpu_s - before[1]) / (now - before[0]):.0%} of a core · "
        processes = "1 process" if load.processes == 1 else f"{load.processes} processes"
        return f"{share}{load.cpu_s:.1f} s of CPU · {load.memory / 1e6:,.0f} MB · {processes}"


def in_background(work: Callable[[], None]) -> None:
    """Do it off the kernel's own threads."""
    # An empty context: a thread with that of a cell prints into it for ever, ipython/ipykernel#1491.
    context = contextvars.Context().run
    threading.Thread(target=context, args=(work,), name="subagents-nb-page", daemon=True).start()


def _safely(answer: Callable[[dict[str, Any]], dict[str, Any]], content: dict[str, Any]) -> dict[str, Any]:
    try:
        return answer(content)
    except SubagentsError as error:
        return {"kind": "fault", "text": str(error)}
    except Exception:  # noqa: BLE001 - the page must not wait for an answer that never comes
        _log.exception("a run could not be looked into")
        return {"kind": "fault", "text": "That failed inside subagents_nb; the kernel's log has the reason."}


def _token(content: dict[str, Any]) -> str:
    token = content.get("token")
    return token if isinstance(token, str) and _TOKEN.fullmatch(token) else ""


def _place(content: dict[str, Any], name: str) -> int:
    value = content.get(name)
    return value if type(value) is int and 0 <= value < 2**53 else 0


def _phrase(content: dict[str, Any]) -> str:
    text = content.get("text")
    return text.strip().lower()[:_MOST_CHARS] if isinstance(text, str) else ""
