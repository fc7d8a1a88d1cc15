"""When to point at a run: each step is judged by itself, and the run shows the worst."""

from __future__ import annotations

from typing import Any

from subagents_nb.domain.agents.attention import (
    Attention,
    AttentionSettings,
    Heartbeat,
    Thresholds,
    attention,
    attention_of_run,
)

THRESHOLDS = Thresholds()


def found(now: float = 100.0, heard: float = 100.0, **fields: Any) -> Attention | None:
    return attention(Heartbeat(now_s=now, last_event_s=heard, **fields), THRESHOLDS)


def kind_of(found: Attention | None) -> str | None:
    return found.kind if found is not None else None


def run(*steps: Attention | None, questions: int = 0, full: bool = False) -> Attention | None:
    return attention_of_run(steps, open_questions=questions, disk_full=full, since_s=1.0)


def test_a_step_is_pointed_at_for_what_it_does_itself() -> None:
    assert found() is None
    assert kind_of(found(heard=40)) == "idle"
    assert kind_of(found(heard=40, open_tools=(("bash", 40.0),))) is None
    assert kind_of(found(now=300, heard=40, open_tools=(("bash", 40.0),))) == "long-tool"


def test_the_settings_say_when_to_point_at_a_step_and_a_silence_that_is_named_holds_for_all_who_think() -> None:
    assert AttentionSettings().thresholds("high") == Thresholds(idle_s=300)
    named = AttentionSettings(idle_s=90, tool_s=10, failing_edits=2).thresholds("high")
    assert named == Thresholds(idle_s=90, tool_s=10, failing_edits=2)
    assert kind_of(attention(Heartbeat(now_s=100, last_event_s=9), named)) == "idle"
    assert kind_of(attention(Heartbeat(now_s=100, last_event_s=80, open_tools=(("bash", 80.0),)), named)) == "long-tool"


def test_edits_fail_one_after_another_or_of_one_file_between_good_ones() -> None:
    one_after_another = found(failed_edits=(10.0, 20.0, 30.0))
    assert one_after_another is not None
    assert one_after_another.text == "The last 3 edits failed."
    of_one_file = found(failed_edits=(30.0,), failed_paths=(("b.py", (15.0,)), ("a.py", (10.0, 20.0, 30.0))))
    assert of_one_file is not None
    assert (of_one_file.text, of_one_file.since_s) == ("The last 3 edits of a.py failed.", 10.0)
    assert found(failed_paths=(("a.py", (10.0, 20.0)), ("b.py", (30.0,)))) is None
    assert found(now=400, heard=400, failed_edits=(10.0, 20.0, 350.0)) is None, "two of them are too long ago"


def test_a_path_of_the_models_choosing_is_only_shown() -> None:
    odd = found(failed_paths=(("{0} %s {x}", (1.0, 2.0, 3.0)),))
    assert odd is not None
    assert odd.text == "The last 3 edits of {0} %s {x} failed."


def test_in_a_run_of_several_steps_the_one_that_is_meant_is_named() -> None:
    silent = found(heard=30, who="Step 2 (scout)")
    assert silent is not None
    assert silent.text == "Step 2 (scout): Nothing was heard for 70 s."


def test_a_run_shows_what_it_needs_itself_and_then_the_worst_of_its_steps() -> None:
    idle, later = found(heard=20), found(heard=30)
    failing = found(failed_edits=(10.0, 20.0, 30.0))
    slow = found(now=300, heard=300, open_tools=(("bash", 5.0),))
    assert run(None, None) is None
    assert run(None, later, idle) == idle
    assert run(idle, slow) == slow
    assert run(idle, slow, failing) == failing
    assert kind_of(run(failing, questions=2)) == "question"
    assert kind_of(run(failing, questions=2, full=True)) == "disk-full"
