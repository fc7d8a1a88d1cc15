"""What a cell that launches a run does: the task as written, the flags, the variable, the wait."""

from __future__ import annotations

import json

import pytest
from kernels import Kernel, display_id_of
from support import until

BODIES = {
    "a dict comprehension": "Fix this: {k: v for k, v in {'a': 1}.items() if v}\n",
    "TypeScript": "const f = <T,>(x: T): `${string}` => `${x}`; // {T}\n",
    "LaTeX": r"Prove $\frac{a}{b} \% \{x\}$ and $$\sum_{i=1}^{n}$$" "\n",
    "percent signs": "100% %s %(name)s %%d %d\n",
    "dollars": "$HOME ${HOME} $x $$ `echo $x`\n",
    "doubled braces": "{{ name }} {{x}} {% if %}\n",
    "emoji": "Count the 🦊🏳️‍🌈 and 漢字, é vs é\n",
    "CRLF": "one\r\ntwo\r\n",
    "a closing semicolon": "SELECT 1;\n",
    "lines that look like magics": "%time x\n%%bash\n!ls\n?help\n%subagent -- y\n-- not a flag\n",
    "blank lines and blanks around": "\n  indented\n\n\ttab  \n\n",
    "quotes and backslashes": "'''a''' \"\"\"b\"\"\" \\n \\\\ r'c'\n",
    "no newline at its end": "the end",
}


@pytest.mark.parametrize("what", sorted(BODIES))
def test_the_body_is_the_task_byte_for_byte(kernel: Kernel, what: str) -> None:
    kernel.ok("x = name = HOME = 'expanded'")
    kernel.ok("%%subagent --model scripted:echo -q --wait -o run\n" + BODIES[what])
    # IPython ends every cell with a newline.
    expected = BODIES[what] if BODIES[what].endswith("\n") else BODIES[what] + "\n"
    assert kernel.value("run.plan.steps[0].task") == expected
    assert kernel.value("run.output").strip() == expected.strip()


def test_the_words_behind_two_dashes_are_the_task_of_a_line(kernel: Kernel) -> None:
    kernel.ok("%subagent scout --model scripted:echo --name by-line -- Don't {touch} --this # at all")
    assert kernel.value("__import__('subagents_nb').attach('by-line').plan.steps[0].task") == (
        "Don't {touch} --this # at all"
    )


def test_a_line_returns_its_run(kernel: Kernel) -> None:
    kernel.ok("run = %subagent --model scripted:echo -- hello")
    assert kernel.value("run.result(20)") == "hello"


def test_a_line_may_end_in_a_question_mark(kernel: Kernel) -> None:
    kernel.ok("%subagent --model scripted:echo -q --wait -o run -- Which columns look wrong?")
    assert kernel.value("run.output") == "Which columns look wrong?"
    kernel.ok("other = %subagent --model scripted:echo -- And why?")
    assert kernel.value("other.result(20)") == "And why?"


def test_the_limit_of_a_tool_call_can_be_given_and_configured(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:echo -q -o run --tool-timeout 90s\nx")
    assert kernel.value("run.plan.steps[0].tool_timeout_s") == 90
    kernel.ok("%config SubagentMagics.tool_timeout = '2m'")
    try:
        kernel.ok("%%subagent --model scripted:echo -q -o run\nx")
        assert kernel.value("run.plan.steps[0].tool_timeout_s") == 120
    finally:
        kernel.ok("%config SubagentMagics.tool_timeout = ''")


def test_a_line_without_a_task_says_where_it_goes(kernel: Kernel) -> None:
    assert "behind -- on the line" in kernel.fails("%subagent scout")


@pytest.mark.parametrize(
    ("flags", "name"),
    [("--name 'two words'", "two words"), ('--name="two words" # why', "two words"), ("--name a.b_c-d", "a.b_c-d")],
)
def test_values_arrive_without_their_quotes(kernel: Kernel, flags: str, name: str) -> None:
    shown = kernel.ok(f"%%subagent --model scripted:echo --dry-run {flags}\nx").plain
    assert shown.splitlines()[0] == f"Plan: {name} (nothing was launched)"


def test_the_line_is_not_expanded(kernel: Kernel) -> None:
    kernel.ok("name = 'expanded'")
    assert "'{name}' can't name a run" in kernel.ok("%%subagent --model scripted:echo --dry-run --name {name}\nx").plain


@pytest.mark.parametrize(
    "magic",
    [
        "%%subagent", "%subagent", "%subagent_status", "%subagent_wait", "%subagent_stop", "%subagent_attach",
        "%subagent_agents", "%subagent_doctor", "%subagent_interrupt", "%subagent_again", "%subagent_retune",
        "%subagent_drain", "%subagent_steer", "%%subagent_steer", "%subagent_answer", "%%subagent_answer",
        "%subagent_resume", "%%subagent_resume",
    ],
)  # fmt: skip
def test_help_prints_and_returns(kernel: Kernel, magic: str) -> None:
    before = kernel.ok("%subagent_status").plain
    cell = kernel.ok(f"{magic} -h" + ("\nx" if magic.startswith("%%") else ""))
    assert cell.stdout.startswith("usage: %")
    assert cell.shown == []
    assert kernel.ok("%subagent_status").plain == before


def test_a_flag_that_is_none_hides_no_other_fault_of_the_cell(kernel: Kernel) -> None:
    said = kernel.fails("%%subagent scoot --modle scripted:ecko --timeout soon --fresh=1\nx")
    for part in ("5 reasons", "you mean --model", "--fresh takes no value", "no length of time", "'scoot'", "'ecko'"):
        assert part in said, said
    said = kernel.fails("%%subagent_chain --modle x\nsteps:\n  - clrk: x\n    modell: y")
    for part in ("perhaps you mean --model", "line 4: a step has no key 'modell'"):
        assert part in said, said
    assert "behind -- on the line" in kernel.fails("%subagent scout which columns look wrong")


def test_a_question_mark_shows_the_same_help(kernel: Kernel) -> None:
    cell = kernel.ok("%%subagent?")
    shown = cell.reply["payload"][0]["data"]["text/plain"]
    assert "--schema NAME" in shown
    assert "survives the cell" in shown
    cell = kernel.ok("%subagent_wait?")
    assert "give up after so long" in cell.reply["payload"][0]["data"]["text/plain"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("%%subagent --modell scripted:echo\nx", "perhaps you mean --model"),
        ("%%subagent --model\nx", "--model needs a value"),
        ("%%subagent scout twice\nx", "'twice' is one word too many"),
        ("%%subagent 'scout\nx", "check its quotes"),
        ("%%subagent scoot --model scripted:echo\nx", "Did you mean 'scout'?"),
        ("%%subagent --model scripted:ecko\nx", "there is no script 'ecko'"),
        ("%%subagent --model opnai:gpt-5\nx", "Did you mean 'openai'"),
        ("%%subagent --model openai:gpt-5\nx", "OPENAI_API_KEY is not set"),
        ("%%subagent --model scripted:echo --timeout soon\nx", "'soon' is no length of time"),
        ("%%subagent --model scripted:echo --wait=soon\nx", "--wait: 'soon' is no length of time"),
        ("%%subagent --model scripted:echo --cwd nowhere\nx", "does not exist"),
        ("%%subagent --model scripted:echo --thinking much\nx", "the levels are"),
        ("%%subagent --model scripted:echo --name r-x\nx", "can't name a run"),
        ("%%subagent --model scripted:echo\n  ", "the task is empty"),
        ("%%subagent scout --model scripted:echo\n", "the task is empty; write what is to be done"),
        ("%%subagent_chain", "the cell has no steps; write them as a YAML list"),
        ("%subagent_stop", "say which run"),
        ("%subagent_stop nope", "No run is named 'nope'"),
        ("%subagent_attach ../../etc", "can't be a run id or name"),
        ("%subagent_status --state bad", "the states are"),
        ("%subagent_status -n many", "-n: 'many' is no number of 0 or more"),
        ("%subagent_wait --timeout never", "'never' is no length of time"),
        ("%subagent_agents extra", "'extra' is one word too many"),
        ("%%subagent --model scripted:echo --tool-timeout soon\nx", "'soon' is no length of time"),
        ("%subagent_steer nope", "behind -- on the line"),
        ("%subagent_steer nope -- look", "No run is named 'nope'"),
        ("%%subagent_steer\nlook", "say which run"),
        ("%subagent_steer nope --folow-up -- look", "perhaps you mean --follow-up"),
        ("%subagent_answer nope", "behind -- on the line"),
        ("%subagent_resume nope --max-requests many -- go on", "No run is named 'nope'"),
        ("%subagent_retune nope", "say what to change: --timeout"),
        ("%subagent_retune nope --max-requests 0", "'0' is no number of 1 or more"),
        ("%subagent_again nope -o 1a", "no Python name"),
        ("%subagent_interrupt nope", "No run is named 'nope'"),
        ("%subagent_drain", "say which run"),
    ],
)
def test_a_mistake_fails_the_cell_in_few_words(kernel: Kernel, code: str, said: str) -> None:
    error = kernel.fails(code)
    assert said in error
    assert len(error.splitlines()) <= 12
    assert "Traceback" not in error
    assert str(kernel.user_home) not in error


def test_all_faults_of_a_launch_are_told_at_once(kernel: Kernel) -> None:
    error = kernel.fails("%%subagent scoot --model scripted:ecko --timeout 0 --thinking much\nx")
    assert "for 4 reasons" in error
    assert "\n    Working directory: ~/work\n" in error, "what belongs to one reason stands under it"
    assert kernel.ok("%subagent_status --state live").plain.startswith("0 live")


def test_o_binds_the_run_before_it_has_ended(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:slow -q -o work\nx")
    assert kernel.value("type(work).__name__") == "Run"
    assert kernel.value("str(work.state)") in ("queued", "running")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("1a", "no Python name"),
        ("class", "no Python name"),
        ("list", "hide the builtin"),
        ("Out", "IPython uses"),
        ("_", "IPython uses"),
        ("os", "a module of yours"),
    ],
)
def test_o_refuses_what_should_not_be_bound_before_anything_starts(kernel: Kernel, name: str, said: str) -> None:
    kernel.ok("import os")
    assert said in kernel.fails(f"%%subagent --model scripted:echo --name refused-name -o {name}\nx")
    assert "No run is named" in kernel.fails("%subagent_attach refused-name")


def test_o_may_hide_a_builtin_by_force(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:echo -q -o list --force\nx")
    assert kernel.value("type(list).__name__") == "Run"
    kernel.ok("del list")


SCHEMAS = """
import dataclasses, enum
from pydantic import BaseModel
from typing_extensions import TypedDict

class Row(BaseModel):
    column: str
    rows: int

class Model(BaseModel):
    rows: list[Row]

@dataclasses.dataclass
class Data:
    column: str
    rows: int

class Typed(TypedDict):
    column: str

plain = {"type": "object", "title": "Plain", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
"""


@pytest.mark.parametrize(
    ("schema", "check"),
    [
        ("Model", "type(value) is Model and all(type(row) is Row for row in value.rows)"),
        ("Data", "type(value) is Data"),
        ("Typed", "type(value) is dict and set(value) == {'column'}"),
        ("plain", "type(value) is dict and type(value['n']) is int"),
    ],
)
def test_a_schema_types_the_result(kernel: Kernel, schema: str, check: str) -> None:
    kernel.ok(SCHEMAS)
    kernel.ok(f"%%subagent --model scripted:echo -q -o found --schema {schema}\nx")
    kernel.ok("value = await found")
    assert kernel.value(check)


@pytest.mark.parametrize(
    ("schema", "said"),
    [("Modell", "Did you mean Model?"), ("number", "is no object schema"), ("Bare", "is no object schema")],
)
def test_what_is_no_schema_is_refused(kernel: Kernel, schema: str, said: str) -> None:
    kernel.ok(SCHEMAS + "\nnumber = 3\nclass Bare: pass")
    assert said in kernel.fails(f"%%subagent --model scripted:echo --schema {schema}\nx")


def test_a_template_is_filled_from_variables_if_asked_for(kernel: Kernel) -> None:
    kernel.ok("column = 'unit_price'")
    kernel.ok("%%subagent --model scripted:echo -q --template -o run\nLook at {{ column }}, {column} and $column.")
    assert kernel.value("run.result(20)").strip() == "Look at unit_price, {column} and $column."
    assert "--template nope" in kernel.fails("%%subagent --model scripted:echo --template\n{{ nope }}")
    assert "is no name" in kernel.fails("%%subagent --model scripted:echo --template\n{{ __import__('os') }}")


def test_a_dry_run_shows_the_whole_plan_and_starts_nothing(kernel: Kernel) -> None:
    before = kernel.value("len(__import__('subagents_nb').runs())")
    cell = kernel.ok("%%subagent scout --model scripted:echo --dry-run --tag t\nsecret-looking {x}")
    assert [sorted(bundle) for bundle in cell.shown] == [["text/html", "text/plain"]]
    assert "secret-looking {x}" in cell.plain
    assert "scripted:echo" in cell.plain
    assert kernel.value("len(__import__('subagents_nb').runs())") == before
    assert str(kernel.user_home) not in json.dumps(cell.shown)


def test_quiet_shows_nothing_and_starts_all_the_same(kernel: Kernel) -> None:
    cell = kernel.ok("%%subagent --model scripted:echo -q --name hushed\nx")
    told = {m["msg_type"] for m in cell.messages} - {"comm_msg"}  # the views of earlier cells go on meanwhile
    assert told == {"status", "execute_input"}
    until(lambda: kernel.state("hushed") == "complete")


def test_the_run_is_shown_once_and_is_in_out(kernel: Kernel) -> None:
    cell = kernel.ok("%%subagent --model scripted:echo\nx")
    assert len([m for m in cell.messages if m["msg_type"] in ("display_data", "execute_result")]) == 1
    assert kernel.value(f"type(Out[{cell.reply['execution_count']}]).__name__") == "Run"


def test_wait_returns_when_the_run_has_ended(kernel: Kernel) -> None:
    cell = kernel.ok("%%subagent --model scripted:echo --wait --name waited\nthe answer")
    assert kernel.state("waited") == "complete"
    kernel.until(lambda: kernel.updates_of(display_id_of(cell)), what="the card")
    assert "the answer" in kernel.updates_of(display_id_of(cell))[-1]["text/plain"]


def test_a_wait_that_is_over_is_no_error_and_the_run_goes_on(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:slow --wait 0.2 --name goes-on\nx")
    assert kernel.state("goes-on") in ("queued", "running")
    until(lambda: kernel.state("goes-on") == "running")


def test_a_failed_run_fails_the_cell_that_waited_for_it(kernel: Kernel) -> None:
    error = kernel.fails("%%subagent --model scripted:fail --wait --name doomed\nx")
    assert error.startswith("RunFailed: Run doomed (r-")
    assert len(error.splitlines()) == 1


def test_a_failed_run_raises_where_its_result_is_asked_for(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:fail -q -o run\nx")
    for code in ("await run", "run.result()", "run.output"):
        assert kernel.fails(code).startswith("RunFailed: Run ")


def test_two_runs_of_one_cell_are_at_work_at_once_and_await_leaves_the_loop_free(kernel: Kernel) -> None:
    kernel.ok(
        "import asyncio\n"
        "ticks = []\n"
        "async def clock():\n"
        "    while True:\n"
        "        ticks.append(1)\n"
        "        await asyncio.sleep(0.01)\n"
        "ticking = asyncio.ensure_future(clock())\n"
        "first = %subagent --model scripted:slow -- one\n"
        "second = %subagent --model scripted:slow -- two\n"
        "while not all(str(run.state) == 'running' for run in (first, second)):\n"
        "    await asyncio.sleep(0.02)\n"
        "async def later():\n"
        "    before = len(ticks)\n"
        "    while len(ticks) < before + 20:\n"
        "        await asyncio.sleep(0.01)\n"
        "    first.stop(); second.stop()\n"
        "    return len(ticks) - before\n"
        "stopping = asyncio.ensure_future(later())\n"
        "ends = await asyncio.gather(first, second, return_exceptions=True)\n"
        "moved = await stopping\n"
        "ticking.cancel()\n"
    )
    assert kernel.value("[type(end).__name__ for end in ends]") == ["RunStopped", "RunStopped"]
    assert kernel.value("moved") >= 20


def test_an_await_can_be_given_a_time_by_the_users_own_means(kernel: Kernel) -> None:
    kernel.ok("import asyncio\nrun = %subagent --model scripted:slow -- x")
    cell = kernel.run("await asyncio.wait_for(run, 0.1)")
    assert "TimeoutError" in cell.error
    assert kernel.value("str(run.state)") in ("queued", "running")
