"""The table of verbs: a row and a function are a magic, a subcommand, help, completion and a line of the reference."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from IPython.core.error import UsageError

from subagents_nb.cli import main, make_parser
from subagents_nb.notebook.completion import candidates
from subagents_nb.notebook.magics.magics import magics_of
from subagents_nb.notebook.verbs.call import Call
from subagents_nb.notebook.verbs.table import VERBS
from subagents_nb.notebook.verbs.verb import Verb, arg, count

PAGE = runpy.run_path(str(Path(__file__).parents[3] / ".ci" / "pages.py"))


def cheer(call: Call) -> str:
    return " ".join([call.text] * call.options.often)


CHEER = Verb(
    name="cheer",
    text="text",
    call=cheer,
    help="cheer an agent on",
    args=(arg("--often", metavar="NUMBER", read=count(), default="1", help="how often"),),
)
WITH_CHEER = (*VERBS, CHEER)


def magic(verbs: tuple[Verb, ...] = WITH_CHEER) -> Any:
    return magics_of(verbs)(shell=None).magics


def test_a_row_and_a_function_are_a_magic() -> None:
    magics = magic()
    assert magics["line"]["subagent_cheer"]("--often 2 -- go on") == "go on go on"
    assert magics["cell"]["subagent_cheer"]("", "well done") == "well done"
    with pytest.raises(UsageError, match="%subagent_cheer: there is no flag --oftn; perhaps you mean --often"):
        magics["line"]["subagent_cheer"]("--oftn 2 -- go on")
    with pytest.raises(UsageError, match="--often: '0' is no number of 1 or more"):
        magics["line"]["subagent_cheer"]("--often 0 -- go on")
    with pytest.raises(UsageError, match="there is no text; write it in a %%subagent_cheer cell"):
        magics["line"]["subagent_cheer"]("")


def test_they_are_a_subcommand_of_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cheer", "go on", "--often", "2"], WITH_CHEER) == 0
    assert capsys.readouterr().out == "go on go on\n"
    with pytest.raises(SystemExit) as left:
        main(["cheer", "go on", "--often", "0"], WITH_CHEER)
    assert left.value.code == 2
    assert "'0' is no number of 1 or more" in capsys.readouterr().err


def test_they_are_in_help_completion_and_reference(capsys: pytest.CaptureFixture[str]) -> None:
    assert magic()["line"]["subagent_cheer"]("-h") is None
    said = capsys.readouterr().out
    assert said.startswith("usage: %subagent_cheer [FLAGS] -- TEXT\n\nCheer an agent on.\n") and "how often" in said
    assert "cheer an agent on" in make_parser(WITH_CHEER).format_help()
    found = candidates("%subagent_cheer --o", {}, WITH_CHEER)
    assert found is not None and found[1] == [("--often", "flag: how often")]
    page = PAGE["page"](WITH_CHEER)
    assert "| `%subagent_cheer -- TEXT` | `subagents-nb cheer TEXT` | cheer an agent on |" in page
    assert "- `--often`: how often\n" in page


def test_the_reference_is_what_the_table_says() -> None:
    assert (PAGE["DOCS"] / "verbs.md").read_text("utf-8") == PAGE["page"](VERBS), "run .venv/bin/python .ci/pages.py"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_what_makes_sense_in_one_place_only_has_its_reason(verb: Verb, capsys: pytest.CaptureFixture[str]) -> None:
    for one in (verb, *verb.args):
        assert not (one.not_in_cell and one.not_in_terminal)
    magics = magic(VERBS)
    assert (verb.magic in magics["line"]) is not bool(verb.not_in_cell)
    assert (verb.magic in magics["cell"]) is not bool(verb.not_in_cell)  # its help at least is found there
    with pytest.raises(SystemExit) as left:
        make_parser(VERBS).parse_args([verb.command, "-h"])
    assert left.value.code == (2 if verb.not_in_terminal else 0)


def test_names_are_given_once() -> None:
    for names in ([verb.magic for verb in VERBS if not verb.not_in_cell], [verb.name for verb in VERBS],
                  [verb.command for verb in VERBS if not verb.not_in_terminal]):  # fmt: skip
        assert len(names) == len(set(names))


def test_the_table_and_the_terminal_load_nothing_heavy() -> None:
    loaded = "print('IPython' in sys.modules or 'pydantic' in sys.modules)"
    code = f"import sys; from subagents_nb.cli import make_parser; make_parser(); {loaded}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_help_of_a_magic_is_made_when_it_is_asked_for() -> None:
    launch: Any = magics_of(VERBS).subagent  # type: ignore[attr-defined]
    assert "--schema NAME" in launch.getdoc() and "--schema" not in launch.__doc__


@pytest.mark.parametrize("verb", [verb for verb in VERBS if not verb.not_in_cell], ids=lambda verb: verb.magic)
def test_help_is_found_in_line_and_cell_form(verb: Verb, capsys: pytest.CaptureFixture[str]) -> None:
    magics = magic(VERBS)
    told = {}
    for form, call in {"line": magics["line"][verb.magic], "cell": magics["cell"][verb.magic]}.items():
        for flag in ("-h", "--help"):
            assert (call(flag) if form == "line" else call(flag, "")) is None
            told[form] = capsys.readouterr().out
            assert told[form].startswith(f"usage: {verb.prog}")
    assert ("\nHere, " in told["line"]) is bool(verb.yaml or verb.launches == "chain")
    assert ("\nHere, " in told["cell"]) is not bool(verb.without_body)


def test_a_body_that_says_nothing_to_a_magic_is_not_dropped_without_a_word() -> None:
    with pytest.raises(UsageError, match="a cell's body says nothing to it; write it as a line: %subagent_doctor"):
        magic(VERBS)["cell"]["subagent_doctor"]("", "print(1)\n")
