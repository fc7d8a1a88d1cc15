"""The line of a magic: quotes, comments, help, near misses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from IPython.core.error import UsageError
from magic_parsers import PARSERS

from subagents_nb.notebook.magics.line_parser import HelpShown, number, split_text
from subagents_nb.notebook.verbs.verb import FOREVER

subagent_parser = PARSERS["subagent"]

LINES: list[tuple[str, dict[str, Any]]] = [
    ("", {"agent": None, "wait": None, "quiet": None}),
    ("scout", {"agent": "scout"}),
    ('--name "two words"', {"name": "two words"}),
    ("--name 'two words'", {"name": "two words"}),
    ('--name="two words" scout', {"name": "two words", "agent": "scout"}),
    ("--name two\\ words", {"name": "two words"}),
    ("""--name 'say "hi"'""", {"name": 'say "hi"'}),
    ("--name ''", {"name": ""}),
    ("scout # a comment with --flags and 'quotes", {"agent": "scout"}),
    ("scout --tag issue#12 --model x:y", {"agent": "scout", "tag": ["issue#12"], "model": "x:y"}),
    ("--name '# no comment' scout", {"name": "# no comment", "agent": "scout"}),
    ("--tag \\#12 scout", {"tag": ["#12"], "agent": "scout"}),
    ("--model {model} --name $HOME", {"model": "{model}", "name": "$HOME"}),
    ("--tag a --tag b", {"tag": ["a", "b"]}),
    ("--wait", {"wait": FOREVER}),
    ("--wait scout", {"wait": FOREVER, "agent": "scout"}),
    ("--wait 0.2 scout", {"wait": "0.2", "agent": "scout"}),
    ("scout --wait=30m", {"wait": "30m", "agent": "scout"}),
    ("-o found -q", {"bind": "found", "quiet": True}),
    ("-ofound", {"bind": "found"}),
    ("--bind found --force --dry-run", {"bind": "found", "force": True, "dry_run": True}),
    ("--thinking high --cwd data/ --timeout 1.5h", {"thinking": "high", "cwd": "data/", "timeout": "1.5h"}),
    ("--name größe-漢字", {"name": "größe-漢字"}),
]


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_a_line_is_split_as_a_shell_would_and_nothing_is_expanded(line: str, expected: dict[str, Any]) -> None:
    found = vars(subagent_parser().read(line))
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "clerk --modle x --schema",
            ["there is no flag --modle; perhaps you mean --model", "--schema needs a value"],
        ),
        ("--zzzz scout --fresh=1 -o", ["there is no flag --zzzz", "--fresh takes no value", "--bind needs a value"]),
        ("--frsh scout twice thrice", ["there is no flag --frsh; perhaps you mean --fresh", "'twice' is one word"]),
        ("--model --timeout -3 --tmeout", ["--model needs a value", "there is no flag --tmeout", "--timeout needs a"]),
    ],
)
def test_all_that_is_wrong_with_a_line_is_told_at_once(line: str, said: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        subagent_parser().read(line)
    assert [part for part in said if part not in str(caught.value)] == []
    noted: list[Exception] = []
    found = subagent_parser().read(line, noted.append)
    assert len(noted) == len(said)
    assert (found.agent or "") in line


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--modell x", "there is no flag --modell; perhaps you mean --model"),
        ("--modell=x", "perhaps you mean --model"),
        ("--zzzz", "there is no flag --zzzz."),
        ("--mod x", "there is no flag --mod"),
        ("--model", "--model needs a value"),
        ("--quiet=yes", "--quiet takes no value"),
        ("scout extra", "'extra' is one word too many"),
        ("'scout", "check its quotes"),
    ],
)
def test_a_line_that_can_not_be_understood_says_what_is_wrong_with_it(line: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        subagent_parser().read(line)
    assert type(caught.value) is UsageError  # of another class IPython would show the whole traceback
    assert said in str(caught.value)
    assert "%%subagent -h" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("magic", sorted(PARSERS))
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_printed_and_nothing_else_happens(magic: str, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(HelpShown):
        PARSERS[magic]().read(flag)
    said = capsys.readouterr().out
    assert said.startswith("usage: %")
    assert all(len(line) <= 100 for line in said.splitlines())


@pytest.mark.parametrize("magic", sorted(PARSERS))
def test_every_flag_says_what_it_does(magic: str) -> None:
    parser = PARSERS[magic]()
    assert all(parser.help_of(flag) for flag in parser.flags() if flag != "--name")


def test_a_magic_that_needs_a_run_says_so() -> None:
    with pytest.raises(UsageError, match="%subagent_attach: say which run"):
        PARSERS["subagent_attach"]().read("")


@pytest.mark.parametrize(
    ("magic", "line", "said"),
    [
        ("subagent", "--no-que", "perhaps you mean --no-queue"),
        ("subagent", "--tool-timeot 3", "perhaps you mean --tool-timeout"),
        ("subagent_resume", "work --max-request 3", "perhaps you mean --max-requests"),
        ("subagent_steer", "work --followup", "perhaps you mean --follow-up"),
        ("subagent_steer", "", "say which run"),
        ("subagent_answer", "work --question", "--question needs a value"),
        ("subagent_retune", "work --time 3", "perhaps you mean --timeout"),
        ("subagent_again", "work --model x", "there is no flag --model"),
    ],
)
def test_the_nearest_flag_is_named_everywhere(magic: str, line: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        PARSERS[magic]().read(line)


@pytest.mark.parametrize(
    ("line", "head", "text"),
    [
        ("run -- look at it", "run", "look at it"),
        ("run --follow-up -- look -- there", "run --follow-up", "look -- there"),
        ("run --   spaces kept  inside ", "run", "spaces kept  inside"),
        ("-- no run", "", "no run"),
        ("run --", "run", ""),
        ("run --flag", "run --flag", None),
        ("run", "run", None),
    ],
)
def test_what_stands_behind_two_dashes_is_the_text(line: str, head: str, text: str | None) -> None:
    assert split_text(line) == (head, text)


@pytest.mark.parametrize(("given", "number_"), [(None, None), ("7", 7), ("0050", 50)])
def test_a_number_is_a_number(given: str | None, number_: int | None) -> None:
    assert number(PARSERS["subagent_resume"](), "--max-requests", given) == number_


@pytest.mark.parametrize("given", ["0", "-3", "many", "3.5", "", "²"])
def test_what_is_no_number_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match=f"--max-requests: '{given}' is no number"):
        number(PARSERS["subagent_resume"](), "--max-requests", given)


def test_only_what_is_a_length_of_time_belongs_to_wait() -> None:
    read = PARSERS["subagent"]().read
    assert read("--wait 5").agent is None
    assert read("--wait 5x").agent == "5x"
