"""How news is shown, where it is shown, and that nothing that goes wrong here disturbs a cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from card_page import Page
from card_payloads import PAYLOADS
from card_samples import answered, asking, ended, lost

from subagents_nb.notebook.views.notices import Notifications
from subagents_nb.notebook.views.notifications import DRAIN_S, Notifier, bundle_of, drain_s


@dataclass
class Shell:
    """A shell that remembers what was published in it."""

    content: dict[str, Any] = field(default_factory=dict)
    shown: list[dict[str, str]] = field(default_factory=list)

    def get_parent(self) -> dict[str, Any]:
        return {"content": self.content}

    @property
    def display_pub(self) -> Any:
        return SimpleNamespace(publish=lambda data, metadata: self.shown.append(data))


@dataclass
class Source:
    """Something with a lost run to tell, which remembers for whom it was asked and how long it waited."""

    for_person: list[bool] = field(default_factory=list)
    drained: list[float] = field(default_factory=list)

    def take(self, *, person: bool) -> Notifications:
        self.for_person.append(person)
        return Notifications((lost(),))

    def drain(self, within_s: float) -> None:
        self.drained.append(within_s)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.delenv("SUBAGENTS_NB_NONINTERACTIVE", raising=False)
    return Source()


def before_cell(shell: Shell, source: Source, code: str = "x = 1", *, history: bool = True) -> Notifier:
    telling = Notifier(shell, lambda: source)
    telling.before_cell(SimpleNamespace(store_history=history, raw_cell=code))
    return telling


def bundle(*ended_: Any, **more: Any) -> dict[str, str]:
    return bundle_of(Notifications(tuple(ended_), **more))


def test_ends_are_lines_with_the_one_thing_to_do() -> None:
    told = bundle(answered("Three stand out.\nMore."), lost(), asking=(asking("Go on?"),))
    assert told["text/plain"] == (
        "Meanwhile:\n"
        "  find-outliers (scout) asks you: “Go on?” (yes / no) · answer with %subagent_answer find-outliers -- …\n"
        "  find-outliers (scout) complete: Three stand out.\n"
        "  find-outliers (scout) lost: The run's process went away without a result (ended by SIGKILL)."
    )
    text = Page(told["text/html"]).text
    assert "✓ complete find-outliers Three stand out." in text
    assert "“Go on?” · answer it: %subagent_answer r-06f3k2m9 -- …" in text
    assert "· go on from here: %subagent_resume r-06f3k2m9 -- …" in text


def test_many_ends_are_cut_with_their_number_and_a_fault_is_told() -> None:
    told = bundle(*[lost()] * 20, fault="Your on_end function failed: KeyError: 'x'")
    assert told["text/plain"].count("\n") == 10
    assert "… and 12 more runs: %subagent_status" in told["text/plain"]
    assert "Your on_end function failed: KeyError: 'x'" in Page(told["text/html"]).text


@pytest.mark.parametrize("text", PAYLOADS)
def test_hostile_text_is_told_as_text(text: str) -> None:
    told = bundle(
        answered(text, name=text), ended("failed", reason="provider", error=text, name=text),
        asking=(asking(text, choices=(text,)),), fault=text,
    )  # fmt: skip
    assert Page(told["text/html"]).tags[0] == "section"
    assert len(told["text/plain"].split("\n")) == 5


def test_a_cell_of_the_persons_is_told(source: Source) -> None:
    shell = Shell({"allow_stdin": True})
    before_cell(shell, source)
    assert source.for_person == [True]
    assert sorted(shell.shown[0]) == ["text/html", "text/plain"]


def test_code_that_a_page_runs_by_itself_is_not_told(source: Source) -> None:
    shell = Shell({"allow_stdin": True})
    before_cell(shell, source, history=False)
    assert (source.for_person, shell.shown) == ([], [])


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("%%subagent scout\nx", True), ("run = %subagent -- x", True), ("x\n%subagent_wait", True),
        ("%subagent_answer work -- yes", False), ("%%subagent_steer work\nx", False), ("all = %subagent_status", False),
    ],
)  # fmt: skip
def test_a_cell_that_looks_at_runs_by_itself_is_not_told(source: Source, code: str, told: bool) -> None:
    before_cell(Shell(), source, code)
    assert source.for_person == [True] * told


def test_before_anything_was_launched_nothing_is_looked_at() -> None:
    shell = Shell()
    telling = Notifier(shell, lambda: None)
    telling.before_cell(SimpleNamespace(store_history=True))
    telling.at_exit()
    assert shell.shown == []


@pytest.mark.parametrize("forced", [False, True])
def test_a_host_without_a_person_is_known(source: Source, monkeypatch: pytest.MonkeyPatch, forced: bool) -> None:
    if forced:
        monkeypatch.setenv("SUBAGENTS_NB_NONINTERACTIVE", "1")
    before_cell(Shell({"allow_stdin": forced}), source)
    assert source.for_person == [False]


def test_what_fails_here_fails_once_and_in_silence(source: Source, capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(Shell):
        @property
        def display_pub(self) -> Any:
            raise RuntimeError("the channel is closed")

    telling = before_cell(Broken({"allow_stdin": True}), source)
    telling.before_cell(SimpleNamespace(store_history=True))
    assert source.for_person == [True]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("given", "seconds"), [(None, DRAIN_S), ("0", 0.0), ("0.5", 0.5), ("soon", DRAIN_S), ("nan", DRAIN_S), ("-1", 0.0)]
)
def test_how_long_a_kernel_without_a_person_waits(
    monkeypatch: pytest.MonkeyPatch, given: str | None, seconds: float
) -> None:
    monkeypatch.delenv("SUBAGENTS_NB_DRAIN_S", raising=False)
    if given is not None:
        monkeypatch.setenv("SUBAGENTS_NB_DRAIN_S", given)
    assert drain_s() == seconds


@pytest.mark.parametrize(("takes_input", "drained"), [(True, []), (False, [0.5])])
def test_only_a_kernel_without_a_person_waits_at_its_end(
    source: Source, monkeypatch: pytest.MonkeyPatch, takes_input: bool, drained: list[float]
) -> None:
    monkeypatch.setenv("SUBAGENTS_NB_DRAIN_S", "0.5")
    before_cell(Shell({"allow_stdin": takes_input}), source).at_exit()
    assert source.drained == drained
