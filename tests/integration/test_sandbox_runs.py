"""Runs in a sandbox, from a launch to the end; and launches that can't have the one they ask for: nothing begins."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support import makes_namespaces, processes_of, script, until

from subagents_nb import attach, launch, preflight, runs
from subagents_nb.domain.runs.states import RunState
from subagents_nb.errors import LaunchRefused
from subagents_nb.store import StoreHome
from subagents_nb.store.processes.bubblewrap import TRIED, bubblewrap

pytestmark = [pytest.mark.timeout(90), pytest.mark.usefixtures("shared_home")]


boxed = pytest.mark.skipif(not makes_namespaces(), reason="a kernel that makes no namespaces")


def agent(name: str, *head: str) -> None:
    folder = Path(os.environ["HOME"], ".subagents/agents")
    folder.mkdir(parents=True, exist_ok=True)
    lines = "\n".join((f"name: {name}", "description: d", *head))
    (folder / f"{name}.md").write_text(f"---\n{lines}\n---\nDo it.\n", encoding="utf-8")


def use_fake(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "bwrap").write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    (folder / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@boxed
def test_the_kernel_and_the_gate_of_a_run_work_in_its_sandbox(shared_home: StoreHome, tmp_path: Path) -> None:
    agent("coder", "tools: python", "sandbox: workspace")
    (tmp_path / "user/secret").write_text("canary", encoding="utf-8")
    code = (
        "import os, pathlib, subagents_nb\n"
        "pathlib.Path('made').write_text('x')\n"
        f"print(os.path.exists({str(tmp_path / 'user/secret')!r}), os.environ['SUBAGENTS_NB_SANDBOX'])\n"
        "try: subagents_nb.launch('scout', 't', model='scripted:echo')\n"
        "except Exception as error: print(error)"
    )
    model = script("box", {"python": code}, {"text": "done"})
    gate = f"test -f made && ! test -e {tmp_path}/user/secret && ! touch /usr/x && test -w ."

    run = launch("coder", "t", model=model, gate=gate, wait=True)

    result = run.status.result
    assert (run.state, result.steps[0].acceptance.status) == (RunState.COMPLETE, "verified"), result.steps[0]
    assert Path("made").read_text() == "x"
    notebook = json.loads((shared_home.run(run.id).step(0) / "python.ipynb").read_text())
    said = "".join(part["text"] for cell in notebook["cells"] for part in cell["outputs"])
    assert said.startswith("False workspace\n"), said
    assert "from which none can be launched; have the agent delegate" in said
    assert not (shared_home.run(run.id).step(0) / "tmp").exists()
    assert json.loads((shared_home.root / TRIED).read_text())["program"]


@boxed
def test_what_works_in_a_sandbox_ends_with_its_run(shared_home: StoreHome) -> None:
    agent("coder", "tools: python")
    code = "import subprocess, time\nsubprocess.Popen(['sleep', '400'], start_new_session=True)\n" \
           "open('begun', 'w').write('x')\ntime.sleep(300)"  # fmt: skip
    run = launch("coder", "t", model=script("long", {"python": code}), sandbox="workspace", fresh=True)
    until(lambda: Path("begun").exists(), 40)
    assert len(processes_of(shared_home)) > 3, "each has the mark of its run"
    run.stop()
    run.wait(20)
    until(lambda: not processes_of(shared_home), 5, what="the end of all in the sandbox")


def test_without_namespaces_a_launch_is_refused_and_nothing_was_started(
    shared_home: StoreHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent("coder", "tools: bash")
    said = "bwrap: No permissions to create new namespace"
    use_fake(monkeypatch, tmp_path / "fake", f"echo '{said}' >&2; exit 1")
    why = f"bubblewrap can't make namespaces here: {said}"
    assert preflight("coder", "t", model="scripted:echo", sandbox="workspace").reasons == (why,)
    with pytest.raises(LaunchRefused, match="bubblewrap can't make namespaces here"):
        launch("coder", "t", model="scripted:echo", sandbox="workspace")
    assert list(runs()) == [] and processes_of(shared_home) == {}
    assert launch("scout", "t", model="scripted:echo", sandbox="workspace", wait=True).state is RunState.COMPLETE, (
        "who starts no process needs none"
    )


@boxed
def test_a_sandbox_that_is_gone_when_its_step_begins_fails_the_step(
    shared_home: StoreHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent("coder", "tools: python", "sandbox: workspace")
    real = bubblewrap(shared_home.root, os.environ, cwd=tmp_path / "work").program
    own = tmp_path / "fake/bwrap"
    forget = f"rm -f {shared_home.root}/{TRIED} {own}; printf '#!/bin/sh\\nexit 1\\n' > {own}; chmod +x {own}"
    use_fake(monkeypatch, tmp_path / "fake", f'{forget}; exec {real} "$@"')
    run = launch("coder", "t", model=script("never", {"python": "open('made', 'w')"}), wait=True)
    assert run.state is RunState.FAILED and not Path("made").exists()
    assert "The sandbox can't be made: bubblewrap can't make namespaces here: exit code 1" in run.status.result.error
    assert attach(run.id).status.result.reason == "setup"
