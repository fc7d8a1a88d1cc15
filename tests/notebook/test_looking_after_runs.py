"""The line magics, completion, defaults, loading and unloading."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kernels import Kernel, display_id_of
from magic_parsers import PARSERS
from support import until


def slow(kernel: Kernel, name: str, *, bind: str = "work") -> None:
    kernel.ok(f"%%subagent --model scripted:slow -q --name {name} -o {bind}\nx")


def test_the_list_shows_what_there_is_and_narrows(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:echo -q --wait --name listed-one\nx")
    kernel.run("%%subagent --model scripted:fail -q --wait --name listed-two\nx")
    everything = kernel.ok("%subagent_status").plain
    assert "listed-one" in everything
    assert "listed-two" in everything
    failed = kernel.ok("%subagent_status --state failed").plain
    assert "listed-two" in failed
    assert "listed-one" not in failed
    assert "1 ended · " in kernel.ok("%subagent_status -n 1").plain


def test_a_list_that_is_empty_says_no_more_than_it_knows(kernel: Kernel) -> None:
    assert kernel.ok("%subagent_status --state rejected").plain.endswith("No run to show.")
    assert kernel.ok("%subagent_wait").plain.endswith("No run to show.")


def test_the_list_can_be_kept(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:echo -q --wait --name kept\nx")
    kernel.ok("found = %subagent_status")
    assert "kept" in kernel.value("[run.name for run in found]")


@pytest.mark.parametrize(
    ("name", "how"), [("by-word", "by-word"), ("by-variable", "work"), ("by quotes", "'by quotes'")]
)
def test_a_run_is_named_by_name_or_by_the_variable_that_holds_it(kernel: Kernel, name: str, how: str) -> None:
    slow(kernel, f"'{name}'")
    shown = kernel.ok(f"%subagent_stop {how} --reason 'seen enough'").plain
    assert f"{name} (delegate) stopped" in shown
    assert kernel.state(name) == "stopped"


def test_a_name_that_was_given_again_means_the_newest_run_of_the_notebook(kernel: Kernel) -> None:
    for _ in range(2):
        kernel.ok("%%subagent --model scripted:echo -q --wait --fresh -o newest --name same\nx")
    kernel.ok("%subagent_attach same -o found")
    assert kernel.value("found.id == newest.id")


def test_a_notebook_that_stops_a_run_by_its_name_passes_twice(kernel: Kernel) -> None:
    for _ in range(2):
        kernel.ok("%%subagent --model scripted:slow -q -o stopped_one --name twice\nx")
        assert "twice (delegate) stopped" in kernel.ok("%subagent_stop twice").plain
        assert kernel.value("stopped_one.state") == "stopped"


def test_to_stop_a_run_that_has_ended_is_answered(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:echo -q --wait -o run\nx")
    assert "complete already: there was nothing to stop" in kernel.ok("%subagent_stop run").plain
    assert kernel.value("run.stop()") is False


def test_several_runs_are_stopped_at_once_and_asking_ones_are_listed(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:ask -q --name asks-first -o one\nx")
    kernel.ok("%%subagent --model scripted:slow -q --name works-on -o two\nx")
    until(lambda: kernel.value("[q.text for q in one.questions]"), 20, what="the question")
    assert "asks-first" in kernel.ok("%subagent_status --asking").plain
    assert "works-on" not in kernel.ok("%subagent_status --asking").plain
    assert "%subagent_stop: say which run" in kernel.fails("%subagent_stop")
    said = kernel.fails("%subagent_stop nobody one no-one")
    assert "No run is named 'nobody'" in said and "No run is named 'no-one'" in said
    shown = kernel.ok("%subagent_stop one two").plain
    assert "asks-first" in shown and "works-on" in shown
    assert kernel.value("[one.state, two.state]") == ["stopped", "stopped"]
    assert kernel.ok("%subagent_stop one two").ok


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_help_is_shown_for_each_magic_as_a_line_and_alone_in_a_cell(kernel: Kernel, name: str) -> None:
    for code in (f"%{name} -h", f"%%{name} -h", f"%%{name} --help\n"):
        said = kernel.ok(code).stdout
        assert "show this help and do nothing" in said and name in said


def test_a_launch_from_python_records_its_cell_and_is_found_by_it(kernel: Kernel) -> None:
    kernel.ok(
        "from subagents_nb import launch, runs\nrun = launch(task='x', model='scripted:echo', fresh=True, wait=True)",
        cell_id="c-python",
    )
    assert kernel.value("run.plan.origin.cell_id") == "c-python"
    assert kernel.value("bool(run.plan.origin.session and run.plan.origin.source_sha256)")
    assert kernel.value("[r.id for r in runs(cell='c-python')] == [run.id]")
    assert kernel.value("len(runs(notebook='no-such.ipynb'))") == 0


def test_waiting_returns_the_runs_as_they_stand(kernel: Kernel) -> None:
    slow(kernel, "waited-for")
    assert "running" in kernel.ok("%subagent_wait waited-for --timeout 300ms").plain
    kernel.ok("work.stop()")
    assert "stopped" in kernel.ok("%subagent_wait waited-for").plain


def test_status_of_one_run_shows_it(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:echo -q --wait -o run\nthe answer")
    assert "the answer" in kernel.ok("%subagent_status run").plain


def test_attach_finds_the_type_of_the_result_again(kernel: Kernel) -> None:
    kernel.ok("from pydantic import BaseModel\nclass Found(BaseModel):\n    n: int")
    kernel.ok("%%subagent --model scripted:echo -q --wait --name typed --schema Found\nx")
    kernel.ok("%subagent_attach typed -o again")
    assert kernel.value("type(again.output) is Found")
    kernel.ok("class Found(BaseModel):\n    other: str")
    kernel.ok("%subagent_attach typed -o again")
    assert kernel.value("type(again.output) is dict")
    assert "does not fit Found" in kernel.fails("%subagent_attach typed --schema Found -o again\nagain.output")


def test_the_agents_are_listed_with_their_origin(kernel: Kernel) -> None:
    folder = kernel.work / ".subagents" / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "taster.md").write_text("---\nname: taster\ndescription: Tastes data.\n---\nYou taste.\n")
    (folder / "broken.md").write_text("---\nname: [\n---\n")
    try:
        cell = kernel.ok("%subagent_agents")
    finally:
        for file in folder.iterdir():
            file.unlink()
    assert "Tastes data." in cell.plain
    assert "broken.md" in cell.plain
    assert str(kernel.user_home) not in str(cell.shown)


def test_the_doctor_tells_no_path_of_the_users_home(kernel: Kernel) -> None:
    shown = kernel.ok("%subagent_doctor").plain
    assert "ok   store" in shown
    assert str(kernel.user_home) not in shown


@pytest.mark.parametrize(
    ("code", "offered", "replaced"),
    [
        ("%%subagent --mo", "--model", "--mo"),
        ("%%subagent sc", "scout", "sc"),
        ("%%subagent --model scripted:ec", "scripted:echo", "scripted:ec"),
        ("%%subagent --model=scripted:ec", "scripted:echo", "scripted:ec"),
        ("%%subagent scout --schema Fou", "Found", "Fou"),
        ("%subagent_status --sta", "--state", "--sta"),
    ],
)
def test_the_kernel_completes_our_lines(kernel: Kernel, code: str, offered: str, replaced: str) -> None:
    kernel.ok("from pydantic import BaseModel\nclass Found(BaseModel):\n    n: int")
    assert kernel.complete(code) == ([offered], replaced)


def test_the_kernel_completes_runs_by_name_and_by_variable(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:echo -q --wait --name offered-run -o offered_too\nx")
    for code in ("%subagent_stop off", "x = 1\n%subagent_stop off", "y = %subagent_attach off"):
        found, text = kernel.complete(code)
        assert (sorted(found), text) == (["offered-run", "offered_too"], "off")


@pytest.mark.parametrize(
    "code", ["%%subagent scout\n--mo", "%%bash\n%subagent_stop off", "--mo", "import o", "%timeit x"]
)
def test_nothing_of_ours_is_offered_elsewhere(kernel: Kernel, code: str) -> None:
    assert kernel.complete(code)[0] == []


DEFAULTS = [
    ("default_model", "'scripted:echo'", "", "model         scripted:echo"),
    ("default_agent", "'scout'", "--model scripted:echo", "agent         scout"),
    ("thinking", "'high'", "--model scripted:echo", "thinking      high"),
    ("timeout", "'7m'", "--model scripted:echo", "timeout       7 min"),
]


@pytest.mark.parametrize(("trait", "value", "flags", "shown"), DEFAULTS)
def test_each_default_can_be_configured(kernel: Kernel, trait: str, value: str, flags: str, shown: str) -> None:
    kernel.ok(f"%config SubagentMagics.{trait} = {value}")
    try:
        assert shown in kernel.ok(f"%%subagent --dry-run {flags}\nx").plain
    finally:
        kernel.ok(f"%config SubagentMagics.{trait} = ''")


def test_quiet_template_and_wait_can_be_configured(kernel: Kernel) -> None:
    kernel.ok("%config SubagentMagics.quiet = True")
    kernel.ok("%config SubagentMagics.template = True")
    kernel.ok("%config SubagentMagics.wait = 'forever'")
    try:
        kernel.ok("what = 'rows'")
        cell = kernel.ok("%%subagent --model scripted:echo --name configured -o run\nCount the {{ what }}")
        assert cell.shown == []
        assert kernel.value("run.output").strip() == "Count the rows"
    finally:
        kernel.ok("%config SubagentMagics.quiet = False")
        kernel.ok("%config SubagentMagics.template = False")
        kernel.ok("%config SubagentMagics.wait = ''")


def test_the_display_mode_can_be_configured_for_every_magic(kernel: Kernel) -> None:
    slow(kernel, "shown-as")
    try:
        kernel.ok("%config SubagentMagics.display = 'html'")
        assert sorted(kernel.ok("%subagent_attach work").shown[0]) == ["text/html", "text/plain"]
        kernel.ok("%config SubagentMagics.display = 'text'")
        cell = kernel.ok("work")
        assert "shown-as (delegate)" in cell.stdout
        assert cell.shown == []
        kernel.ok("%config SubagentMagics.display = 'widget'")
        assert "application/vnd.jupyter.widget-view+json" in kernel.ok("work", cell_id=None).shown[-1]
    finally:
        kernel.ok("%config SubagentMagics.display = 'auto'")
    shown = kernel.ok("work").shown[-1]
    assert sorted(shown) == ["text/html", "text/plain"] and kernel.comm_of("shown-as", last=True) in shown["text/html"]


OURS = (
    "[name for kind in get_ipython().magics_manager.magics.values() for name in kind if 'subagent' in name]",
    "[m.__name__ for m in get_ipython().Completer.custom_matchers]",
    "[type(c).__name__ for c in get_ipython().configurables if type(c).__module__.startswith('subagents_nb')]",
    "[t.name for t in __import__('threading').enumerate() if t.name.startswith('subagents')]",
    "[key for f in get_ipython().display_formatter.formatters.values() for key in f.deferred_printers"
    " if 'subagents_nb' in key[0]]",
    "[f.__qualname__ for f in get_ipython().events.callbacks['pre_run_cell'] if 'subagents_nb' in f.__module__]",
    "[t.__name__ for t in get_ipython().input_transformer_manager.token_transformers"
    " if 'subagents_nb' in t.__module__]",
)


@pytest.mark.row(31, cases=1)
def test_loading_shows_nothing_starts_nothing_and_unloading_leaves_nothing(kernel: Kernel) -> None:
    try:
        kernel.ok("%unload_ext subagents_nb")
        for what in OURS:
            assert kernel.value(what) == []
        assert "not found" in kernel.fails("%%subagent --model scripted:echo\nx")
        cell = kernel.ok("%load_ext subagents_nb")
        # Afterwards a page is asked for views that an earlier kernel left on it, over a comm that shows nothing.
        shows = [m["msg_type"] for m in cell.messages if not m["msg_type"].startswith("comm_")]
        assert [kind for kind in shows if kind != "status"] == ["execute_input"]
        assert kernel.value(OURS[3]) == []
        kernel.run("%load_ext subagents_nb")
        kernel.ok("__import__('subagents_nb').load_ipython_extension(get_ipython())")
        assert kernel.value(OURS[1]) == ["subagents_matcher"]
        assert kernel.value(OURS[2]) == ["SubagentMagics"]
        assert kernel.value(OURS[5]) == ["Notifier.before_cell"]
        assert kernel.value(OURS[6]) == ["_TextLine", "_TextAssign"]
    finally:
        kernel.ok("%reload_ext subagents_nb")


@pytest.mark.row(31, cases=20)
def test_reloading_keeps_one_of_each_and_the_runs_go_on(kernel: Kernel, case: Callable[..., None]) -> None:
    slow(kernel, "reloaded-over")
    shown = display_id_of(kernel.ok("work"))
    for _ in range(20):
        kernel.ok("%reload_ext subagents_nb")
        case()
    assert kernel.value(OURS[2]) == ["SubagentMagics"]
    assert kernel.value(OURS[1]) == ["subagents_matcher"]
    # The live view became a card, and nothing is watched any more.
    kernel.until(lambda: kernel.updates_of(shown), what="the card")
    until(lambda: kernel.value(OURS[3]) == [], what="the end of the watching thread")
    until(lambda: kernel.state("reloaded-over") == "running", 20, what="its work, or that it goes on")
    kernel.ok("work")
    kernel.ok("work")
    assert kernel.value(OURS[3]) == ["subagents-nb-watch"]


@pytest.mark.row(31, cases=1)
def test_an_await_outlives_a_reload(kernel: Kernel) -> None:
    slow(kernel, "awaited-over-a-reload")
    kernel.ok(
        "import asyncio\n"
        "async def wait():\n"
        "    try:\n"
        "        await work\n"
        "    except Exception as error:\n"
        "        return type(error).__name__\n"
        "waiting = asyncio.ensure_future(wait())"
    )
    kernel.ok("%reload_ext subagents_nb")
    kernel.ok("work.stop()")
    assert kernel.ok("await asyncio.wait_for(waiting, 20)").plain == "'RunStopped'"


def test_all_that_is_wrong_with_a_cell_is_told_at_once(kernel: Kernel) -> None:
    error = kernel.fails(
        "%%subagent scuot --model opneai:x --schema Nope --inputs lost,gone --timeout soon --cwd nowhere"
        " --max-requests ² --tool-budget '{hard: 0}' --wait=2weeks --output ../x\nx"
    )
    wanted = ("'scuot'", "opneai", "--schema Nope", "--inputs lost", "--inputs gone", "'soon' is no length of time",
              "nowhere", "--max-requests", "tool_budget.hard", "output: ")  # fmt: skip
    assert [word for word in wanted if word not in error] == []
