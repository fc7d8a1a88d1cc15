"""A run as a notebook: valid, exported by nbconvert, and of what a model wrote nothing comes alive."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from support import script, until

from subagents_nb import Run, chain, launch, step, trust
from subagents_nb.cli import main
from subagents_nb.errors import RequestError

pytestmark = [pytest.mark.timeout(90), pytest.mark.usefixtures("shared_home")]


def begin(*steps: dict[str, Any], task: str = "do it", **options: Any) -> Run:
    return launch("scout", task, model=script("script", *steps), name="probe", **options)


def read(path: Path) -> Any:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def sources(notebook: Any) -> list[str]:
    return [cell.source for cell in notebook.cells]


def test_the_notebook_lies_with_the_run_and_has_prompt_and_answer() -> None:
    run = begin({"text": "**three** rows"}, wait=True)
    path = run.transcript()
    assert path.parent == run.home.run(run.id).root
    assert sources(read(path))[1:] == ["### Prompt\n\n```text\ndo it\n```", "### Answer\n\n**three** rows"]
    assert str(Path.cwd()) not in json.dumps(read(path).metadata)


def test_nbconvert_exports_it_and_nothing_of_the_model_comes_alive() -> None:
    from nbconvert import HTMLExporter

    bad = "<script>alert(1)</script> <img src=x onerror=alert(2)> ![p](http://127.0.0.1:9/p) [x](javascript:alert(3))"
    run = begin({"text": f"{bad}\n\n```html\n{bad}\n```"}, task=bad, wait=True)
    picture = {"image/png": "iVBORw0KGgo=", "text/html": bad}
    ran = nbformat.v4.new_code_cell("print(1)", outputs=[nbformat.v4.new_output("display_data", picture)])
    notebook = nbformat.v4.new_notebook(cells=[ran])
    (run.home.run(run.id).step(0) / "python.ipynb").write_text(nbformat.writes(notebook))
    path = run.transcript()
    (code,) = [cell for cell in read(path).cells if cell.cell_type == "code"]
    assert code.outputs[0].data == {"image/png": "iVBORw0KGgo="}
    page, _ = HTMLExporter(template_name="basic").from_filename(str(path))
    alive = re.findall(r"<(?:script|img)[^>]*(?:alert|onerror|127\.0\.0\.1)[^>]*>|<script>alert|href=.javascript", page)
    assert alive == []
    assert "iVBORw0KGgo=" in page


def test_python_that_really_ran_is_a_code_cell_with_its_outputs_and_errors() -> None:
    folder = Path(".subagents/agents")
    folder.mkdir(parents=True)
    (folder / "counter.md").write_text("---\nname: counter\ndescription: d\ntools: [python]\n---\nCount.\n")
    trust(contents=True)
    model = script("sums", {"python": "print('one')\n6 * 7"}, {"python": "1 / 0"}, {"text": "42"})
    run = launch("counter", "count", model=model, wait=True)
    first, second = [cell for cell in read(run.transcript()).cells if cell.cell_type == "code"]
    assert first.source == "print('one')\n6 * 7"
    assert [one.get("text", one.get("data")) for one in first.outputs] == ["one\n", {"text/plain": "42"}]
    assert (second.outputs[0].ename, second.outputs[0].output_type) == ("ZeroDivisionError", "error")


def test_a_chain_has_its_steps_under_headings_and_one_step_by_itself() -> None:
    flow = chain(step("scout", "look", label="first"), step("scout", "write"))
    run = launch(flow, model="scripted:echo", name="two", wait=True)
    whole = sources(read(run.transcript()))
    assert [line for line in whole if line.startswith("## ")] == [
        next(line for line in whole if line.startswith("## steps&#91;0&#93;: scout · first")),
        next(line for line in whole if line.startswith("## steps&#91;1&#93;: scout")),
    ]
    path = run.transcript(step=1)
    assert path.parent == run.home.run(run.id).step(1)
    assert not any("look" in source for source in sources(read(path)))
    with pytest.raises(RequestError, match=r"has no steps\[7\]; it has steps\[0\] to steps\[1\]"):
        run.transcript(step=7)


def test_of_a_live_run_it_shows_what_there_is() -> None:
    run = begin({"text": "a"}, {"sleep": 60})
    until(lambda: run.status.tail, 20)
    assert len(read(run.transcript()).cells) >= 2
    run.stop()
    assert run.wait(30)
    assert "Ended as stopped" in sources(read(run.transcript()))[-1]


def test_no_history_or_a_damaged_one_is_said_so() -> None:
    run = begin({"text": "a"}, wait=True)
    session = run.home.run(run.id).step(0) / "session.json"
    session.write_text("{")
    assert "can't be read" in sources(read(run.transcript()))[1]
    session.unlink()
    assert "Nothing was kept" in sources(read(run.transcript()))[1]


def test_secrets_of_the_process_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "value-of-the-key")
    run = begin({"text": "it is value-of-the-key"}, task="use value-of-the-key", wait=True)
    assert "value-of-the-key" not in run.transcript().read_text()


def test_the_terminal_writes_it_where_it_is_told_and_over_no_file_of_others(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    begin({"text": "a"}, wait=True)
    target = tmp_path / "t.ipynb"
    for _ in range(2):
        assert main(["transcript", "probe", "-o", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}\n" * 2
    read(target)
    assert target.stat().st_mode & 0o777 == 0o600
    target.write_text("{}")
    assert main(["transcript", "probe", "-o", str(target)]) == 1
    assert "is no transcript" in capsys.readouterr().err
    assert target.read_text() == "{}"
