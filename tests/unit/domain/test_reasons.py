"""A reason is a text that knows what it is about."""

from __future__ import annotations

import pytest

from subagents_nb.domain.values.reasons import NO_EARLIER_OUTPUT, Reason, Reasons, place_of


def test_a_reason_reads_as_its_text_and_keeps_what_it_is_about() -> None:
    reason = Reason("it is a number", lead="step 2: count", place="2", field="count")
    assert reason == "step 2: count: it is a number" and reason.text == "it is a number"
    again = Reason(reason, lead="cell 3")
    assert again == "cell 3: step 2: count: it is a number"
    assert (again.place, again.field, again.text) == ("2", "count", "it is a number")
    with pytest.raises(AttributeError, match="a value"):
        reason.place = "3"


def test_what_is_found_at_a_place_is_told_to_those_around_it_with_the_place() -> None:
    reasons = Reasons()
    step = reasons.at("2.1", "step 2.1 (scout)")
    step.at("", "acceptance.review.agent").append("there is none")
    step.extend(["no task", Reason("no such output", code=NO_EARLIER_OUTPUT)])
    assert reasons == [
        "step 2.1 (scout): acceptance.review.agent: there is none",
        "step 2.1 (scout): no task",
        "step 2.1 (scout): no such output",
    ]
    assert step == ["acceptance.review.agent: there is none", "no task", "no such output"]
    assert [one.place for one in reasons] == ["2.1"] * 3 and reasons[2].code == NO_EARLIER_OUTPUT
    assert place_of(reasons[0]) == "2.1" and place_of("a plain text") == ""
