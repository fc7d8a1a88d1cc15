"""Show a run where it is: as a live widget, as a card, or as a line of text."""

from __future__ import annotations

import functools
import itertools
import secrets
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from subagents_nb.blocks import Html, to_text
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.errors import StoreError
from subagents_nb.launching import Run
from subagents_nb.launching.following.watch import WATCHER
from subagents_nb.launching.gathering.lineage import cell_of, parent_of
from subagents_nb.launching.results.worktree_handoff import kept_patch, remaining_worktrees
from subagents_nb.notebook.cards.card import CardContext, card, card_page
from subagents_nb.notebook.cards.reused import reused_line
from subagents_nb.notebook.cards.view import live_text, standing_text, widget_state
from subagents_nb.notebook.page.html import element, to_page
from subagents_nb.notebook.views.live import CardView, LiveView
from subagents_nb.notebook.views.notices import NOTICES
from subagents_nb.notebook.views.page_requests import PageRequests
from subagents_nb.plain_text import plain
from subagents_nb.store import FileRuns
from subagents_nb.store.runs.seen import mark_seen
from subagents_nb.terminal import say

if TYPE_CHECKING:
    from subagents_nb.notebook.views.widget import RunWidget

_MAX_EVENTS = 100_000
_MAX_PATCHES, _MAX_PATCH_BYTES = 8, 200_000
_MODES = ("auto", "widget", "html", "text")
_settings: dict[str, str] = {"mode": "auto"}
# Each live view with what ends its watch. The watcher holds a view until its run has ended; this holds none.
_live: weakref.WeakKeyDictionary[LiveView | CardView, Callable[[], None]] = weakref.WeakKeyDictionary()

_ends: deque[tuple[_Display, Snapshot]] = deque(maxlen=100)
_tokens: set[str] = set()  # of the views that this kernel made
_KEPT = 16
_kept: deque[RunWidget] = deque()  # of runs that have ended, for a page that was loaded meanwhile


def set_display_mode(mode: str) -> None:
    """Choose how runs are shown: `auto`, `widget`, `html` or `text`."""
    if mode not in _MODES:
        raise ValueError(f"there is no display mode {mode!r}; the modes are {', '.join(_MODES)}")
    _settings["mode"] = mode


def show_run(run: Run) -> bool:
    """Show one run under a display id of its own: live while it works, a static card once it has ended.

    Return whether the view will show the end by itself; a line of text can't.
    """
    shell = _shell()
    snapshot = run.status
    mode = _mode(shell)
    if snapshot.ended:
        NOTICES.known_to_person(run.id)
        mark_seen(run.home.run(run.id))
    if mode == "text":
        reuse_text = reused_line(run, snapshot)
        beside = CardContext(binding=_bound_to(run, shell), reused=reuse_text)
        say(to_text(card(snapshot, beside)) if snapshot.ended else live_text(snapshot, reuse_text))
        return snapshot.ended
    if snapshot.ended:
        _publish(shell, card_of(run, shell))
        return True
    place = _Display(run, shell, f"subagents-nb-{secrets.token_hex(8)}")
    view = _show_widget(place, snapshot) if mode == "widget" else _show_html(place, snapshot)
    unfollow = WATCHER.follow(run.home, run.id, view.on_snapshot, tick=view.tick)
    _live[view] = unfollow
    NOTICES.shown(run.id)
    return True


def repeat_ends(*, publish: bool) -> None:
    """Publish once more the last cards of the runs that ended since the last call, or only forget them.

    A program that executes a notebook listens while a cell runs. What is published between two cells is lost to it.
    """
    while _ends:
        place, snapshot = _ends.popleft()
        if publish:
            place.replace(snapshot)


def restate_all(*, begins: bool) -> None:
    """Let the plain outputs of live runs say how they stand, and as of when: a cell begins or ends.

    Below a live view only when one begins, since the person is at that cell then and writes nothing in the view.
    """
    for view in list(_live):
        if begins or isinstance(view, CardView):
            view.restate()


def leave_all() -> None:
    """Leave a static card where a live view stands and stop watching for it; the runs go on."""
    for view, unfollow in list(_live.items()):
        unfollow()
        view.leave()
    _live.clear()
    _ends.clear()
    while _kept:
        _kept.popleft().dispose()
    set_display_mode("auto")


class _Display:
    """Where one showing of a run stands on the page."""

    def __init__(self, run: Run, shell: Any, display_id: str) -> None:
        self.run = run
        self.shell = shell
        self.token = ""  # a class, by which a page finds the output
        self._transient = {"display_id": display_id}

    def show(self, data: dict[str, Any], metadata: dict[str, Any] | None = None) -> None:
        self.shell.display_pub.publish(data=data, metadata=metadata or {}, transient=self._transient)

    def standing(self, snapshot: Snapshot) -> dict[str, str]:
        """Return what stands there while the run works: how it stood, as of when, and how to look again."""
        html = _bundle(snapshot, self.run, self.shell)["text/html"]
        classes = f"{self.token} {self.token}-0 subagents-nb-run {self.run.id}"
        return {
            "text/html": to_page(element("div", {"class": classes}, Html(html))),
            "text/plain": plain(standing_text(snapshot, reused_line(self.run, snapshot))),
        }

    def restate(self, snapshot: Snapshot) -> None:
        """Put there how it stands now."""
        data = self.standing(snapshot)
        self.shell.display_pub.publish(data=data, metadata={}, transient=self._transient, update=True)

    def replace(self, snapshot: Snapshot) -> None:
        """Put a card there, which is what the saved notebook keeps."""
        data = _bundle(snapshot, self.run, self.shell)
        self.shell.display_pub.publish(data=data, metadata={}, transient=self._transient, update=True)

    def replace_durably(self, snapshot: Snapshot) -> None:
        """Do the same for a host that may not have listened just now."""
        if snapshot.ended:
            _ends.append((self, snapshot))  # first, or a cell that begins just now would miss it
        self.replace(snapshot)


def _show_widget(place: _Display, snapshot: Snapshot) -> LiveView:
    """Show a live view: before the plain output, where a page finds it by its token, or as an output of its own."""
    place.token = secrets.token_hex(16)
    shows_models = _shows_models(place.shell)
    if not shows_models:
        place.show(place.standing(snapshot))
    widget, view = _live_view(place, snapshot, finds=not shows_models)
    if shows_models:
        bundle: Any = widget._repr_mimebundle_() or {}
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        place.show({**data, **place.standing(snapshot)}, metadata)
    return view


def _live_view(place: _Display, snapshot: Snapshot, *, finds: bool) -> tuple[RunWidget, LiveView]:
    """Return a widget and what feeds it; `finds` if the page finds its place by the token."""
    from subagents_nb.notebook.views.widget import ChainWidget, RunWidget

    requests = PageRequests(place.run, card=lambda: card_of(place.run, place.shell))
    kind = ChainWidget if snapshot.stages else RunWidget
    token = place.token if finds else ""
    _tokens.add(place.token)
    state = widget_state(snapshot, reused_line(place.run, snapshot))
    widget = kind(state, on_request=requests.on_message, token=token)

    def end(last: Snapshot) -> None:
        if last.ended:
            _kept.append(widget)
        place.replace(last)
        while len(_kept) > _KEPT:
            _kept.popleft().dispose()

    view = LiveView(
        widget,
        snapshot,
        publish_end=end,
        publish_state=place.restate if finds else lambda _: None,
        reused=functools.partial(reused_line, place.run),
    )
    requests.on_watch = view.watch
    return widget, view


def take_over(run: Run, token: str) -> dict[str, str] | None:
    """Go on with a view that an earlier kernel made, where a page has found its token; return its card if it has ended.

    Nothing is displayed: the page has the place, and asks for the card at the end by itself.
    """
    snapshot, shell = run.status, _shell()
    if token in _tokens:
        return None
    if snapshot.ended:
        return card_of(run, shell)
    place = _Display(run, shell, f"subagents-nb-{secrets.token_hex(8)}")
    place.token = token
    _, view = _live_view(place, snapshot, finds=True)
    _live[view] = WATCHER.follow(run.home, run.id, view.on_snapshot, tick=view.tick)
    return None


def _show_html(place: _Display, snapshot: Snapshot) -> CardView:
    place.show(_bundle(snapshot, place.run, place.shell))
    return CardView(place.replace_durably, first=snapshot)


def card_of(run: Run, shell: Any = None) -> dict[str, str]:
    """Return a run as it stands, as a card and as text."""
    return _bundle(run.status, run, shell)


def _bundle(snapshot: Snapshot, run: Run, shell: Any) -> dict[str, str]:
    if snapshot.plan is None and (snapshot.has_value or not snapshot.ended):
        # The plan knows what a value's schema is called, and from which run a live one goes on.
        snapshot = FileRuns(run.home).snapshot(run.id, whole=True)
    left_no_word = snapshot.ended and snapshot.result is None
    beside = CardContext(
        binding=_bound_to(run, shell),
        has_session=_has_session(run),
        changed_files=_changed_files(run) if left_no_word else (),
        source=FileRuns(run.home).snapshot(snapshot.resumed_from).name if snapshot.resumed_from else "",
        reused=reused_line(run, snapshot),
        patches=_patches(run, snapshot),
        trees=_trees(run) if left_no_word else 0,
        disk=run.disk_bytes if snapshot.ended else 0,  # a live card is made anew each second
        as_of="" if snapshot.ended else time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
    )
    html = card_page(snapshot, beside)
    if snapshot.ended:  # by its classes a page finds it, and can open all of the run below
        html = to_page(element("div", {"class": f"subagents-nb-card {run.id}"}, html))
    return {"text/html": html, "text/plain": to_text(card(snapshot, beside))}


def run_html(run: Run) -> str:
    """Return a run as it stands, as a card, for hosts that know nothing else."""
    return card_of(run)["text/html"]


def _has_session(run: Run) -> bool:
    try:
        return (run.home.run(run.id).step(0) / "session.json").stat().st_size > 0
    except OSError:
        return False


def _patches(run: Run, snapshot: Snapshot) -> dict[int, str]:
    """Return what the first steps that had a worktree changed there, as far as it can be shown."""
    steps = snapshot.result.steps if snapshot.result is not None else ()
    records = [step.worktree for step in steps if step.worktree is not None][:_MAX_PATCHES]
    return {one.step: kept_patch(run.home, run.id, one, _MAX_PATCH_BYTES) for one in records}


def _trees(run: Run) -> int:
    """Return how many worktrees a run left behind."""
    try:
        return len(remaining_worktrees(run.home, run.id))
    except StoreError:
        return 0


def _changed_files(run: Run) -> tuple[str, ...]:
    """Return what a run without a last word had changed, from its events."""
    events = itertools.islice(run.events(), _MAX_EVENTS)
    return tuple(dict.fromkeys(str(e.get("path")) for e in events if e.get("type") == "file-changed"))


def _bound_to(run: Run, shell: Any) -> str | None:
    """Return the variable that holds this run, if the user has one: that of this very handle before another's."""
    variables = dict(getattr(shell, "user_ns", {}))
    names = [name for name, value in variables.items() if isinstance(value, Run) and value.id == run.id]
    names.sort(key=lambda name: variables[name] is not run)
    return next((name for name in names if not name.startswith("_")), None)


def _publish(shell: Any, data: dict[str, str]) -> None:
    shell.display_pub.publish(data=data, metadata={})


def _shell() -> Any:
    from IPython.core.getipython import get_ipython

    return get_ipython()


def display_mode(shell: Any) -> str:
    """Return how things are shown here: `text`, `html` or `widget`."""
    return _mode(shell)


def _mode(shell: Any) -> str:
    if shell is None or getattr(shell, "kernel", None) is None:
        return "text"
    mode = _settings["mode"]
    if mode != "auto":
        return mode
    # Colab delivers later messages to earlier views unreliably (googlecolab/colabtools#498).
    if "google.colab" in sys.modules:
        return "html"
    # A page says which cell it runs. Programs that execute notebooks don't, show no widget to anybody, and would save
    # the whole state of each, with its module, in the notebook (jupyter/nbconvert#900).
    return "widget" if cell_id(shell) is not None else "html"


def _shows_models(shell: Any) -> bool:
    """Whether the host opens a model only with an output that shows it, as VS Code does; or the person wants it so."""
    return _settings["mode"] == "widget" or "__vsc_ipynb_file__" in getattr(shell, "user_ns", {})


def cell_id(shell: Any) -> str | None:
    """Return the id of the cell that is being run; None if the front end does not tell."""
    return cell_of(parent_of(shell))
