"""The board in a terminal, by Textual: the same rows and keys as on a page."""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from subagents_nb.launching import Run, Runs
from subagents_nb.notebook.board.board_feed import BoardFeed
from subagents_nb.notebook.board.board_list import BoardList
from subagents_nb.notebook.board.board_requests import BoardRequests
from subagents_nb.notebook.board.terminal_rows import (
    GROUPINGS,
    answers_of,
    fits,
    grouped,
    head_line,
    heading,
    is_cut,
    row_lines,
    whole_text,
)
from subagents_nb.notebook.full.full_view import FullRequests, in_background

_LOOK_S, _SAMPLE_S, _SAMPLES = 0.25, 5.0, 12
_AGAIN_S = 2.0  # how often a run that is open is read again
_READ_S = 0.8  # before that nobody has read what came to stand under the keys
_DIGITS = ("1", "2", "3", "4")


class _Heard:
    """What the feed sets: only that something is new; the rows are asked for when they are drawn."""

    def __init__(self) -> None:
        self.head: Mapping[str, Any] = {}

    def set_trait(self, name: str, value: Any) -> None:
        if name == "head":
            self.head = value

    def hold_sync(self) -> Any:
        return contextlib.nullcontext()


class OpenedRun(ModalScreen[None]):
    """One run in full, until Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "close"),
        *(Binding(digit, f"answer({digit})", show=False) for digit in _DIGITS),
    ]
    CSS = "OpenedRun { background: $background; } #whole { padding: 0 2; }"

    def __init__(self, run: Run, tell: Callable[[dict[str, Any]], None], clock: Callable[[], float]) -> None:
        super().__init__()
        self.clock = clock
        self.run_id, self.tell = run.id, tell
        self.reads = FullRequests(run)
        self.live = True
        self.questions: list[dict[str, Any]] = []
        self.told_at = float("inf")
        self.whole = Static("Reading…", id="whole", markup=False)

    def compose(self) -> ComposeResult:
        yield VerticalScroll(self.whole)
        yield Footer()

    def on_mount(self) -> None:
        """Read it, and again while it works."""
        self.read()
        self.set_interval(_AGAIN_S, lambda: self.read() if self.live else None)

    def read(self) -> None:
        """Have it read, off this thread."""
        in_background(lambda: self.tell({"kind": "full", "run": self.run_id, **self.reads.whole()}))

    def hear(self, told: Mapping[str, Any]) -> None:
        """Show what was read."""
        head = told["head"]
        self.live = bool(head.get("live"))
        questions = list(head.get("questions", ()))
        if questions != self.questions:
            self.questions, self.told_at = questions, self.clock()
        self.whole.update(whole_text(head, told["pages"]))

    def action_answer(self, digit: int) -> None:
        """Answer the first question, once it can have been read."""
        board = self.app
        if not self.questions or self.clock() - self.told_at < _READ_S or not isinstance(board, TerminalBoard):
            return
        question = self.questions[0]
        answers = answers_of(question, whole=not is_cut(question))
        if digit <= len(answers):
            board.ask(self.run_id, "answer", question=question["id"], text=answers[digit - 1][1])


class RowList(OptionList):
    """The rows, and what keys do with the one that is marked, or with those that are selected."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "choose(1)", "answer", key_display="1-4"),
        *(Binding(digit, f"choose({digit})", show=False) for digit in _DIGITS[1:]),
        Binding("w", "write('answer')", "write"),
        Binding("t", "write('steer')", "say"),
        Binding("x", "pick", "select"),
        Binding("X", "pick_all", "all"),
        Binding("s", "stop", "stop"),
        Binding("e", "see", "seen"),
    ]

    def __init__(self, board: TerminalBoard) -> None:
        super().__init__(id="rows", markup=False)
        self.board = board
        self.picked: set[str] = set()
        self.moved_at = float("-inf")  # when another row came under the keys by itself

    def replace(self, options: Sequence[Option]) -> None:
        """Show these; the row that the keys mean stays the same run."""
        if [(one.id, one.disabled) for one in self.options] == [(one.id, one.disabled) for one in options]:
            for index, option in enumerate(options):
                self.replace_option_prompt_at_index(index, option.prompt)
            return
        at, current, top = self.highlighted or 0, self.current, self.scroll_offset.y
        self.set_options(options)
        ids = [option.id for option in options]
        if current is not None and current["id"] in ids:
            self.highlighted = ids.index(current["id"])
        else:  # it is gone: what stands there now was not meant
            self.moved_at = self.board.clock()
            places = [index for index, one in enumerate(ids) if one is not None]
            self.highlighted = min(places, key=lambda index: abs(index - at), default=None)
        self.scroll_to(y=top, animate=False)

    @property
    def current(self) -> dict[str, Any] | None:
        """The row that is marked."""
        option = self.highlighted_option
        return self.board.rows.get(option.id) if option is not None and option.id is not None else None

    @property
    def readable(self) -> dict[str, Any] | None:
        """The same, if it has stood there long enough to be read."""
        return self.current if self.board.clock() - self.moved_at >= _READ_S else None

    def action_choose(self, digit: int) -> None:
        """Answer by a digit, what can have been read."""
        row = self.readable
        if row is None or "question" not in row or self.board.clock() - self.board.news[row["id"]][1] < _READ_S:
            return
        answers = answers_of(row["question"])
        if digit <= len(answers):
            self.board.ask(row["id"], "answer", question=row["question"]["id"], text=answers[digit - 1][1])

    def action_write(self, what: str) -> None:
        """Have an answer written, or something to say to the agent."""
        row = self.readable
        question = row.get("question") if row is not None else None
        if row is None or (what == "answer" and (question is None or "permission" in question)):
            return
        if what == "answer" or row["need"] in ("asks", "working"):
            self.board.write(what, row)

    def action_pick(self) -> None:
        """Select the row, or no more."""
        if (row := self.readable) is not None:
            self.picked ^= {row["id"]}
            self.board.draw()

    def action_pick_all(self) -> None:
        """Select all that are shown, or none if they all are."""
        shown = {option.id for option in self.options if option.id is not None}
        self.picked = self.picked - shown if shown <= self.picked else self.picked | shown
        self.board.draw()

    def action_stop(self) -> None:
        """Stop them."""
        self._ask("stop", ("asks", "working", "waiting"))

    def action_see(self) -> None:
        """Note that they were seen."""
        self._ask("seen", ("failed",))

    def _ask(self, kind: str, needs: Sequence[str]) -> None:
        """Ask it of what is selected and in sight, or of the row."""
        shown = {option.id for option in self.options}
        current = self.readable
        meant = self.picked & shown if self.picked else {current["id"]} if current is not None else set()
        for row in [self.board.rows[one] for one in meant if one is not None]:
            if row["need"] in needs:
                self.board.ask(row["id"], kind)
                self.picked.discard(row["id"])
        self.board.draw()


class TerminalBoard(App[None]):
    """All runs, grouped by what they need, until `q`."""

    TITLE = "subagents-nb"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { padding: 0 1; text-style: bold; }
    #rows { height: 1fr; border: none; padding: 0 1; }
    #said { padding: 0 1; height: 1; color: $text-muted; }
    Input { display: none; border: none; height: 1; padding: 0 1; }
    Input.open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("g", "turn('group')", "group"),
        Binding("d", "turn('done')", "done"),
        Binding("escape", "leave", show=False),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, which: BoardList, listed: Runs, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.clock = clock
        fits_old = which.fits(listed.home) if which.may_hide_failures else None
        self.feed = BoardFeed(which.list, listed, by_state=which.by_state, fits=fits_old)
        self.rows: dict[str, dict[str, Any]] = {}
        self.list = RowList(self)
        self._requests = BoardRequests(self.feed, dict, asked_by="a terminal")
        self._replies: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._heard = _Heard()
        self._head, self._said = Static(id="head", markup=False), Static(id="said", markup=False)
        self._filter = Input(placeholder="Filter: a word, agent:scout, notebook:prices, failed", id="filter")
        self._field = Input(id="field", max_length=8000)
        self._by, self._shows_done = "need", False
        self._writes = ("", "", "")  # what is written, for which run, and for which question of it
        self.news: dict[str, tuple[str, float]] = {}  # by run: its question, and when it came to stand there
        self._rates: dict[str, list[float]] = {}
        self._sampled: dict[str, tuple[float, int]] = {}
        self._drawn = (-1, 0.0)

    def compose(self) -> ComposeResult:
        yield from (self._head, self._filter, self.list, self._field, self._said, Footer())

    def on_mount(self) -> None:
        """Begin to follow the runs."""
        self.list.focus()
        self.feed.begin(self._heard)
        self.draw()
        self.set_interval(_LOOK_S, self._look)

    def on_unmount(self) -> None:
        """Follow them no more."""
        self.feed.drop()

    def _look(self) -> None:
        """Show what was told meanwhile, and draw anew what changed; once a second all, for the times."""
        while not self._replies.empty():
            told = self._replies.get()
            if told.get("kind") == "ack":
                self._said.update(str(told.get("text", "")))
            elif isinstance(self.screen, OpenedRun) and self.screen.run_id == told.get("run"):
                self.screen.hear(told)
        if self.feed.changes != self._drawn[0] or self.clock() - self._drawn[1] >= 1.0:
            self.draw()

    def draw(self) -> None:
        """Draw what there is."""
        if not self.list.is_attached:
            return  # it is being left
        now = self.clock()
        self._drawn = self.feed.changes, now
        state = self.feed.state()
        self.rows = state["rows"]
        self.list.picked &= self.rows.keys()
        self._note(now)
        words = self._filter.value.lower().split()
        shown = [row for row in self.rows.values() if fits(row, words)]
        head = self._heard.head or state["head"]
        picked = f" · {len(self.list.picked)} selected" if self.list.picked else ""
        self._head.update(head_line(head, len(shown), len(self.rows)) + picked)
        options: list[Option] = []
        width = max(40, self.size.width - 4)
        for name, rows in grouped(shown, self._by):
            folded = self._by == "need" and name == "done" and not self._shows_done
            title = heading(name, rows, self._by, head)
            options.append(Option(title.append("  d shows them", style="dim") if folded else title, disabled=True))
            for row in () if folded else rows:
                run_id = row["id"]
                picks, rates = run_id in self.list.picked, self._rates.get(run_id, ())
                options.append(Option(row_lines(row, width, picked=picks, rates=rates), id=run_id))
        self.list.replace(options)

    def _note(self, now: float) -> None:
        """Note when questions came, and tokens a minute."""
        for run_id, row in self.rows.items():
            question = str(row.get("question", {}).get("id", ""))
            if question != self.news.get(run_id, ("", 0.0))[0]:
                self.news[run_id] = question, now
            at, before = self._sampled.get(run_id, (float("-inf"), 0))
            if now - at < _SAMPLE_S:
                continue
            tokens = row["tokens_in"] + row["tokens_out"]
            if at > float("-inf"):
                rates = self._rates.setdefault(run_id, [])
                rates.append(max(0.0, (tokens - before) / ((now - at) / 60)))
                del rates[:-_SAMPLES]
            self._sampled[run_id] = now, tokens

    def ask(self, run_id: str, kind: str, **more: str) -> None:
        """Ask for something, off this thread; what becomes of it is told below the rows."""
        self._requests.hear({"kind": kind, "run": run_id, **more}, self._replies.put)

    def write(self, what: str, row: Mapping[str, Any]) -> None:
        """Open the field: for an answer, or for something to say to the agent."""
        self._writes = what, row["id"], row.get("question", {}).get("id", "")
        self._field.placeholder = f"Your answer to {row['name']}" if what == "answer" else f"Say to {row['name']}"
        self._open(self._field)

    def action_filter(self) -> None:
        """Open the filter."""
        self._open(self._filter)

    def _open(self, field: Input) -> None:
        field.add_class("open")
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while it is typed."""
        if event.input is self._filter:
            self.draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Send what was written, or go back to the rows."""
        text = event.value.strip()
        if event.input is self._field:
            what, run_id, question = self._writes
            if what == "answer" and self.news.get(run_id, ("", 0.0))[0] != question:
                self._said.update("That question is closed.")
            elif text:
                self.ask(run_id, what, text=text, **({"question": question} if what == "answer" else {}))
            self._shut(self._field)
        self.list.focus()

    def _shut(self, field: Input) -> None:
        field.value = ""
        field.remove_class("open")
        self.list.focus()

    def action_leave(self) -> None:
        """Close the field or the filter, or give up what is selected."""
        opened = next((field for field in (self._field, self._filter) if field.has_class("open")), None)
        if opened is not None:
            self._shut(opened)
            return
        self.list.picked.clear()
        self.draw()

    def action_turn(self, what: str) -> None:
        """Group by the next of the groupings; or unfold what is done, or fold it."""
        if what == "group":
            self._by = GROUPINGS[(GROUPINGS.index(self._by) + 1) % len(GROUPINGS)]
            self._said.update(f"grouped by {self._by}")
        else:
            self._shows_done = not self._shows_done
        self.draw()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open a row."""
        if event.option_id is not None and event.option_id in self.rows:
            self.push_screen(OpenedRun(Run(self.feed.home, event.option_id), self._replies.put, self.clock))
