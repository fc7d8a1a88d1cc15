"""What must not end in a notebook: secrets, paths of the user's home, state of widgets."""

from __future__ import annotations

import json

import pytest
from kernels import Kernel

SECRET = "sk-planted-5f1c9d7e8a2b4c6d"  # made up


def test_a_key_of_the_environment_is_in_no_output_and_in_no_file(kernel: Kernel) -> None:
    kernel.ok(f"import os\nos.environ['ANTHROPIC_API_KEY'] = os.environ['MY_SERVICE_TOKEN'] = '{SECRET}'")
    kernel.log.clear()  # the cell above shows it, as everything that a person types
    try:
        kernel.ok("%%subagent scout --model scripted:tools --wait --name hygienic -o run\nLook around.")
        kernel.ok("%%subagent --model anthropic:claude-sonnet-4-5 --dry-run\nx")
        kernel.ok("%subagent_doctor")
        kernel.ok("%subagent_status")
        kernel.ok("%subagent_agents")
        kernel.ok("run")
        kernel.ok("run.status, run.usage, str(list(run.events()))")
        kernel.fails("%%subagent --model anthropic: --cwd nowhere\nx")
        kernel.drain()
        published = json.dumps([(m["content"], m["metadata"]) for m in kernel.log], default=str)
    finally:
        kernel.ok("os.environ.pop('ANTHROPIC_API_KEY'); os.environ.pop('MY_SERVICE_TOKEN')")
    assert SECRET not in published
    run = kernel.home.run(kernel.run_id("hygienic")).root
    for path in [*run.rglob("*"), *kernel.home.supervisor.glob("*.log")]:
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


def test_no_path_of_the_users_home_is_shown(kernel: Kernel) -> None:
    (kernel.work / "notes.txt").write_text("three lines\nof\ntext\n")
    kernel.log.clear()
    kernel.ok("%%subagent scout --model scripted:tools --wait -o run\nLook around.")
    kernel.ok("%%subagent --model scripted:tools --dry-run\nx")
    kernel.ok("%subagent_doctor")
    kernel.ok("%subagent_agents")
    kernel.ok("%subagent_status")
    kernel.ok("run")
    kernel.fails("%%subagent scoot --cwd nowhere --model scripted:echo\nx")
    kernel.drain()
    published = json.dumps([(m["content"], m["metadata"]) for m in kernel.log], default=str)
    assert str(kernel.user_home) not in published
    for document in ("status.json", "result.json", "events.jsonl"):
        path = kernel.home.run(kernel.value("run.id")).root / document
        assert str(kernel.user_home) not in path.read_text(), document


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> [a](javascript:alert(3)) \x1b[31m\u202e"


def test_what_a_model_writes_is_never_markup_that_can_run(kernel: Kernel) -> None:
    kernel.ok("%%subagent --model scripted:echo --wait -o run\n" + HOSTILE)
    card = kernel.ok("run").shown[-1]["text/html"]
    assert "<script" not in card
    assert "<img" not in card
    assert 'href="javascript' not in card
    assert "\x1b" not in card
    assert "\u202e" not in card


@pytest.mark.parametrize("code", ["import subagents_nb", "%load_ext subagents_nb"])
def test_how_long_loading_takes(kernel: Kernel, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Measured in a fresh interpreter that has IPython already; the benchmarks hold the budget."""
    kernel.ok(
        "import subprocess, sys\n"
        "def measure(code):\n"
        "    program = (\n"
        "        'import time\\n'\n"
        "        'from IPython.core.interactiveshell import InteractiveShell\\n'\n"
        "        'shell = InteractiveShell.instance()\\n'\n"
        "        'shell.run_cell(\"1\")\\n'\n"
        "        'began = time.perf_counter()\\n'\n"
        "        f'shell.run_cell({code!r})\\n'\n"
        "        'took = time.perf_counter() - began\\n'\n"
        "        'import sys, threading\\n'\n"
        '        \'print(took, "pydantic" in sys.modules, "subagents_nb" in sys.modules)\\n\'\n'
        "    )\n"
        "    return subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True).stdout"
    )
    found = [kernel.value(f"measure({code!r})").splitlines()[-1].split() for _ in range(3)]
    best = min(float(took) for took, _, _ in found)
    with capsys.disabled():
        print(f"\n{code}: {best * 1000:.0f} ms")
    assert all((heavy, loaded) == ("False", "True") for _, heavy, loaded in found)
    assert best < 5
