"""Variables that go into a run by a cell's flag, and what comes back."""

from __future__ import annotations

import json

from kernels import Kernel

FRAME = "import pandas as pd\ndf = pd.DataFrame({'g': list('aab'), 'v': [1, 2, 3]})\nconfig = {'top': 1}"


def script(kernel: Kernel, name: str, *items: dict[str, object]) -> str:
    folder = kernel.work / ".subagents/scripts"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(items))
    return f"scripted:{name}"


def test_variables_named_by_the_flag_go_into_the_run(kernel: Kernel) -> None:
    kernel.ok(FRAME)
    kernel.ok("%%subagent --model scripted:echo -q --wait -o run --inputs df,config\nx")
    assert kernel.value("[(one.name, one.kind) for one in run.plan.inputs]") == [["df", "table"], ["config", "json"]]
    assert "| columns: g (" in kernel.value("run.output")


def test_a_chain_takes_them_too(kernel: Kernel) -> None:
    kernel.ok(FRAME)
    kernel.ok(
        "%%subagent_chain --model scripted:echo -q --wait -o run --inputs config\n- scout: look\n- scout: again\n"
    )
    assert kernel.value("run.steps[1].text").count("config: dict") == 1


def test_a_name_that_is_none_fails_the_cell_and_starts_nothing(kernel: Kernel) -> None:
    kernel.ok(FRAME)
    assert (
        "there is no variable of this name. Did you mean config?"
        in kernel.run("%%subagent --model scripted:echo --inputs confg\nx").error
    )
    assert "can't be put into a run" in kernel.run("%%subagent --model scripted:echo --inputs pd\nx").error
    assert (
        "more than 0.001 MB"
        in kernel.run("big = 'x' * 5000\n").error
        + kernel.run("%%subagent --model scripted:echo --inputs big --max-input-mb 0.001\nx").error
    )
    assert kernel.value("len(__import__('subagents_nb').runs(state='live'))") == 0


def test_tables_come_back_by_an_explicit_call_and_the_users_kernel_is_not_the_agents(kernel: Kernel) -> None:
    kernel.ok(FRAME)
    cell = "import os; planted = os.getpid(); df['w'] = df.v * 2\ndf.groupby('g', as_index=False).w.sum()"
    model = script(kernel, "sums", {"python": cell}, {"text": "Done."})
    kernel.ok(f"%%subagent delegate --model {model} -q --wait -o run --inputs df\nx", deadline=60)
    assert kernel.value("['planted' in globals(), 'table1' in globals(), *df.columns]") == [False, False, "g", "v"]
    assert kernel.value("run.inject('table1', as_='sums')") == ["sums"]
    assert kernel.value("sums.w.tolist()") == [6, 6]


def test_figures_are_shown_only_when_asked_for(kernel: Kernel) -> None:
    cell = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"
    model = script(kernel, "draws", {"python": cell}, {"text": "Done."})
    shown = kernel.ok(f"%%subagent delegate --model {model} --wait -o run\nx", deadline=60).shown
    assert not any("image/png" in bundle for bundle in shown)
    assert not any("image/png" in bundle for bundle in kernel.ok("run.display()").shown)
    assert any("image/png" in bundle for bundle in kernel.ok("run.display(figures=True)").shown)
