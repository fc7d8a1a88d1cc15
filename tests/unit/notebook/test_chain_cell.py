"""The YAML of a chain: what it means, and the line that each fault is told with."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from magic_parsers import PARSERS
from pydantic import BaseModel

from subagents_nb.domain.plans.flow import Chain
from subagents_nb.domain.values.reasons import Reason
from subagents_nb.errors import LaunchRefused
from subagents_nb.launching import chain, expand, parallel, preflight, step
from subagents_nb.notebook.bodies.chain_cell import parse
from subagents_nb.notebook.bodies.namespace import fill_template
from subagents_nb.store import StoreHome


class Findings(BaseModel):
    files: list[str]


NAMES: dict[str, Any] = {"Findings": Findings, "who": "the reader"}

WHOLE = """\
task: data/sales.csv
steps:
- scout: 'Which files does {task} come from?'
  as: found
  schema: Findings
- expand: {from: {output: found, path: /files}, item: file, max_items: 20, on_empty: fail}
  each:
    agent: reviewer
    task: What is wrong with {file}?
    timeout: 10m
  collect: {as: reviews}
  concurrency: 8
- parallel:
  - worker: 'Mend it: {outputs.reviews}'
    label: mending
  - agent: reviewer
    count: 2
  on_failure: continue
"""
SAME = chain(
    step("scout", "Which files does {task} come from?", as_="found", schema=Findings),
    expand(
        "found",
        "/files",
        step("reviewer", "What is wrong with {file}?", timeout="10m"),
        item="file",
        max_items=20,
        on_empty="fail",
        as_="reviews",
        concurrency=8,
    ),
    parallel(
        step("worker", "Mend it: {outputs.reviews}", label="mending"),
        step("reviewer", count=2),
        on_failure="continue",
    ),
    task="data/sales.csv",
)


def faults(body: str, **how: Any) -> list[str]:
    with pytest.raises(LaunchRefused) as caught:
        parse(body, NAMES, **how)
    return list(caught.value.reasons)


def test_a_body_says_the_same_as_the_functions() -> None:
    assert parse(WHOLE, NAMES).chain == SAME


def test_it_has_the_same_plan_and_the_same_digest(store_home: StoreHome) -> None:
    del store_home
    written = preflight(parse(WHOLE, NAMES).chain, model="scripted:echo")
    composed = preflight(SAME, model="scripted:echo")
    assert written.reasons == composed.reasons == ()
    assert written.digest == composed.digest
    assert written.plan == composed.plan


@pytest.mark.parametrize(
    "body",
    [
        "- scout: Look\n- reviewer:\n",
        "- agent: scout\n  task: Look\n- agent: reviewer\n",
        "steps:\n- {scout: Look}\n- {agent: reviewer}\n",
        "chain: [{agent: scout, task: Look}, {agent: reviewer}]",
    ],
)
def test_the_short_and_the_long_form_of_a_step_mean_the_same(body: str) -> None:
    assert parse(body, {}).chain == chain(step("scout", "Look"), step("reviewer"))


@pytest.mark.parametrize(
    "keys",
    [
        "expand: {from: {output: found, path: /files}, maxItems: 5, onEmpty: skip}\n  failFast: true\n"
        "  parallel: [{agent: reviewer, task: 'x {item}', maxRequests: 3}]\n  collect: {as: all, outputSchema: {}}",
        "expand: {from: found, path: /files, max-items: 5, on-empty: skip}\n  fail-fast: true\n"
        "  each: {agent: reviewer, task: 'x {item}', max-requests: 3}\n  collect: {as: all, output-schema: {}}",
        "expand: {from: {output: found, path: /files}, max_items: 5, on_empty: skip}\n  fail_fast: true\n"
        "  each: {agent: reviewer, task: 'x {item}', max_requests: 3}\n  collect: {as: all, schema: {}}",
    ],
)
def test_keys_may_be_spelt_in_three_ways_and_a_fan_out_in_two(keys: str) -> None:
    each = step("reviewer", "x {item}", max_requests=3)
    expanded = expand("found", "/files", each, max_items=5, on_empty="skip", fail_fast=True, as_="all", schema={})
    assert parse(f"- scout: Look\n- {keys}\n", {}).chain == chain(step("scout", "Look"), expanded)


def test_texts_are_taken_as_they_are_written() -> None:
    body = "- agent: scout\n  task: |\n    Look at: {k: v}, $HOME # and {{ who }}\n      deeper\n"
    assert parse(body, NAMES).chain.items[0].task == "Look at: {k: v}, $HOME # and {{ who }}\n  deeper\n"


def test_a_template_fills_texts_and_never_adds_a_key_or_a_step() -> None:
    variables = {"who": "x\n- agent: worker\n  task: 'evil'"}
    found = parse("- scout: 'Tell {{ who }}'\n", variables, fill=lambda text: fill_template(text, variables)).chain
    assert found == chain(step("scout", f"Tell {variables['who']}"))
    assert faults("- scout: ok\n- scout: '{{ nobody }}'\n", fill=lambda text: fill_template(text, NAMES)) == [
        "line 3: --template nobody: there is no variable of this name. Define it in a cell first."
    ]


def test_an_attached_run_comes_first_and_steps_behind_it_count_on() -> None:
    found = parse("attach: {run: earlier, as: found}\nsteps:\n- reviewer: 'Look at {outputs.found}'\n", {})
    assert found.chain.items[0].run == "earlier"
    assert found.chain.items[0].as_ == "found"
    assert found.lines == {"1": 2, "2": 4}
    assert parse("- attach: earlier\n- reviewer:\n", {}).chain.items[0].run == "earlier"


def test_an_unquoted_off_is_a_level_of_thinking() -> None:
    assert parse("- scout: x\n  thinking: off\n", {}).chain.items[0].thinking == "off"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "line 1: the cell has no steps; write them as a YAML list: `- scout: what to do`"),
        ("just text", "line 2: this is neither a list nor a mapping"),
        ("task: x", "line 2: a chain has steps: a list of items, or such a list under steps:"),
        ("steps: scout", "line 2: steps is a list, each item behind a -"),
        ("- scout", "line 2: a step is `AGENT: task`, or a mapping with agent and task, not the text 'scout'"),
        ("- 5", "line 2: a step is a mapping of keys, not 5"),
        ("- scout: a\n- agent: b\n  taks: c", "line 4: a step has no key 'taks'; did you mean task?"),
        ("- scout: a\n- paralel: []", "line 3: a step has no key 'paralel'; did you mean parallel?"),
        ("- agent: a\n  expnad: {from: b}", "line 3: a step has no key 'expnad'; did you mean expand?"),
        ("- scout: {previous}", "line 2: task must be text, not {'previous': None}; YAML takes braces for a"),
        ("- scout: 5\n  as: x\n- agent: a\n  task: 7", "line 5: task must be text, not 7 (put it in quotes)"),
        ("- scout: a: b", "line 2: bad YAML: mapping values are not allowed"),
        ("- scout: a: b", "put text that holds a colon, a # or braces in quotes"),
        ("- scout: &x a\n- scout: *x", "line 2: YAML anchors and aliases are not accepted"),
        ("- scout: !!python/name:os.system x", "is not accepted"),
        ("- agent: a\n  task: b\n  agent: c", "line 4: the key 'agent' is given twice"),
        ("- agent: a\n  maxRequests: 3\n  max_requests: 4", "line 4: 'max_requests' says the same as 'maxRequests'"),
        ("- agent: a\n  maxRequests: many", "line 3: max_requests must be a whole number, not 'many'"),
        ("- agent: a\n  output_mode: loud", "line 3: output_mode must be inline or file-only, not 'loud'"),
        ("- agent: a\n  schema: Finding", "line 3: schema: Finding: there is no variable"),
        ("- agent: a\n  schema: who", "line 2: who is no object schema"),
        ("- agent: a\n  schema: 5", "line 3: schema is the name of a type of yours"),
        ("- parallel: {agent: a}", "line 2: parallel is a list of steps, each behind a -"),
        ("- parallel:\n  - scout: a\n  - scuot: [b]", "line 4: a step has no key 'scuot'"),
        ("- parallel: []\n  concurency: 3", "line 3: a parallel group has no key 'concurency'; did you mean"),
        ("- parallel: []\n  on-failure: ignore", "line 3: on_failure must be stop or continue, not 'ignore'"),
        ("- expand: found\n  each: {scout: a}", "line 2: expand is a mapping of keys, not 'found'"),
        ("- expand: {max_items: 3}\n  each: {scout: a}", "line 2: expand takes from: {output: NAME, path: /POINTER}"),
        ("- expand: {from: found}\n  label: a", "line 2: a fan-out has one step under each"),
        ("- expand: {from: found, maxitems: 3}\n  each: {scout: a}", "has no key 'maxitems'; did you mean max_"),
        ("- expand: {from: found}\n  each: {scout: a}\n  collect: {name: b}", "line 4: collect has no key 'name'"),
        ("- attach: 4", "line 2: attach takes a variable that holds a run, or a run's name or id"),
        ("- attach: r\n  label: 4", "line 3: label must be text, not 4"),
        ("attach: {run: r,\n  step: -1}\nsteps: []", "line 3: step must be 0 or more, not -1"),
        ("steps:\n- scout: a\ntask: 4", "line 4: task must be text, not 4"),
        ("- expand: {from: found,\n    key: 3}\n  each: {scout: a}", "line 3: key must be text, not 3"),
        ("who: me\nsteps: []", "line 2: a chain has no key 'who'"),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_line(body: str, said: str) -> None:
    assert said in "\n".join(faults(body))


_KEYS = ["scout", "agent", "task", "as", "schema", "count", "reads", "session", "label", "timeout", "acceptance",
         "expand", "from", "each", "collect", "parallel", "steps", "attach", "run", "step", "failFast", ""]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "x", "2m"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4),
    max_leaves=12,
))  # fmt: skip
def test_whatever_yaml_says_is_a_chain_or_is_refused_with_its_lines(data: Any) -> None:
    for body in (data, [data], [{"scout": data}], [{"expand": data, "each": data}], [{"parallel": [data]}]):
        try:
            assert all(line > 1 for line in parse(yaml.safe_dump(body), NAMES).lines.values())
        except LaunchRefused as refused:
            assert all(reason.startswith("line ") for reason in refused.reasons)


def test_all_faults_are_told_at_once_in_the_order_of_their_lines() -> None:
    body = "- agent: a\n  schema: Nope\n- parallel:\n  - agent: b\n    zzz: 1\n  - agent: c\n    task: 3\n"
    assert [reason.split(":")[0] for reason in faults(body)] == ["line 3", "line 6", "line 8"]


def test_what_planning_finds_is_told_with_its_line_too(store_home: StoreHome) -> None:
    del store_home
    body = """\
- scout: a
  as: found
- parallel:
  - scout: b
    count: 2
  - nobody: c
- reviewer: 'see {outputs.fuond}'
- expand: {from: found}
  each: {scout: '{item}'}
"""
    parsed = parse(body, NAMES)
    assert parsed.lines == {"1": 2, "2": 4, "2.1": 5, "2.2": 5, "2.3": 7, "3": 8, "4": 9}
    said = parsed.located(preflight(parsed.chain, model="scripted:echo").reasons)
    assert [reason.split(": ")[:2] for reason in said[:2]] == [
        ["line 7", "stage 2.3 (nobody)"],
        ["line 8", "stage 3 (reviewer)"],
    ]
    assert "line 9: stage 4 (fan-out): max_items is missing: say how many items it may expand to at most" in said


def test_what_planning_has_against_a_value_is_told_with_the_line_of_its_key(store_home: StoreHome) -> None:
    del store_home
    body = """\
- scout:
    task: a
    acceptance:
      verify:
      - {command: make}
      - command: make test
        timeOut: soon
- parallel:
  - agent: scout
    task: b
    toolBudget: {hard: 3,
      sfot: 2}
"""
    parsed = parse(body, NAMES)
    said = parsed.located(preflight(parsed.chain, model="scripted:echo").reasons)
    assert [reason.split(" ")[1] for reason in said] == ["8:", "13:"]


def test_the_line_of_the_only_step_is_known_though_planning_does_not_count_it(store_home: StoreHome) -> None:
    del store_home
    parsed = parse("- nobody: c\n", {})
    said = parsed.located(preflight(parsed.chain, model="scripted:echo", name="r-x").reasons)
    assert any(reason.startswith("line 2: ") and "nobody" in reason for reason in said)
    assert any(reason.startswith("'r-x' can't name a run") for reason in said)


def test_faults_of_the_yaml_and_of_planning_are_told_at_once(store_home: StoreHome) -> None:
    del store_home
    body = """\
- agent: nobody
  task: a
  tsak: b
- scout: b
  timeout: [1]
  output: ../out
- parallel: 3
- reviewer: 'see {outputs.x}'
- agent: scout
  task: 4
  schema: Nope
"""
    parsed = parse(body, NAMES, lenient=True)
    with pytest.raises(LaunchRefused) as caught:
        parsed.refuse(lambda flow: preflight(flow, model="scripted:echo").reasons)
    told = [tuple(reason.split(": ")[:2]) for reason in caught.value.reasons]
    assert [(line, text[:24]) for line, text in told] == [
        ("line 2", "stage 1 (nobody)"),
        ("line 4", "a step has no key 'tsak'"),
        ("line 5", "stage 2 (scout)"),
        ("line 6", "timeout must be a number"),
        ("line 8", "parallel is a list of st"),
        ("line 11", "task must be text, not 4"),
        ("line 12", "schema"),
    ]


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        (
            "- scout: a\n- parallel:\n  - scout: b\n    output: ../x\n  - {agent: scout, task: c, output: y}\n"
            "  - {agent: worker, task: d, output: y}\n- nobody: '{outputs.none}'\n",
            {"name": "r-x", "max_children": 2},
        ),
        ("- nobody: c\n  timeout: 0\n", {"name": "r-x", "usage_budget": "many", "max_children": 0}),
        ("- agent: scout\n  tsak: b\n  task: 4\n- parallel: 3\n- scout: '{outputs.x}'\n  output: ../o\n", {}),
        ("- expand: {from: x}\n  each: {agent: scout}\n- 3\n", {"name": "r-x"}),
    ],
)
def test_a_reworded_reason_is_told_with_the_same_line(body: str, asked: Any, store_home: StoreHome) -> None:
    del store_home
    parsed = parse(body, {}, lenient=True)
    reasons = preflight(parsed.chain, model="scripted:echo", **asked).reasons
    french = {reason: f"le motif nº {number}" for number, reason in enumerate(reasons)}

    def translated(reason: str) -> Reason:
        known = {name: getattr(reason, name) for name in ("place", "path", "code") if isinstance(reason, Reason)}
        return Reason(french[reason], **known)

    expected = [one.partition(": ") if one.startswith("line ") else ("", "", one) for one in parsed.located(reasons)]
    assert any(line for line, _, _ in expected)
    assert parsed.located(map(translated, reasons)) == [
        f"{line}{colon}{french.get(text, text)}" for line, colon, text in expected
    ]


def test_a_fault_of_an_option_is_told_at_its_key_though_its_value_reads_like_a_place() -> None:
    assert faults("- agent: scout\n  task: a\n  count: 'step 3: x: many'\n")[0].startswith(
        "line 4: count must be a whole number"
    )


def test_the_example_of_the_help_is_a_chain_that_can_be_launched(store_home: StoreHome) -> None:
    del store_home

    class File(BaseModel):
        path: str

    class Findings(BaseModel):
        files: list[File]

    example = PARSERS["subagent_chain"]().epilog or ""
    body = example.partition("A body:\n")[2].partition("A mapping")[0]
    assert preflight(parse(body, {"Findings": Findings}).chain, model="scripted:echo").reasons == ()


def test_an_agent_may_have_its_options_behind_its_name() -> None:
    body = "- scout: {task: a, label: b}\n- agent: scout\n- worker: {task: c, timeuot: 3}\n- scout:\n    tsak: d\n"
    assert parse("- scout: {task: a, label: b}\n  as: c", {}).chain == chain(step("scout", "a", label="b", as_="c"))
    assert [fault.split(":")[0] for fault in faults(body)] == ["line 4", "line 5"]


def test_a_default_agent_is_for_steps_that_name_none() -> None:
    found = parse("- task: a\n- agent: scout\n", {}, agent="worker").chain
    assert isinstance(found, Chain)
    assert [item.agent for item in found.items] == ["worker", "scout"]
