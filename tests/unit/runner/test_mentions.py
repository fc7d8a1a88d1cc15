"""What the text of a program names counts as asked for: files that are there or not, variables, git."""

from __future__ import annotations

import pytest

from subagents_nb.runner.tracking.mentions import Mentions, mentions_of_code, mentions_of_command


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("cat later.txt", ("later.txt",)),
        ("ls -l d/f.txt 2>/dev/null; stat -c %s x.csv", ("d/f.txt", "/dev/null", "x.csv")),
        ("test -e .hidden && [ -f README ]", (".hidden", "README")),
        ("echo hello world 3.14 https://example.org/a.csv", ()),
        ("make -j2 ~/x.txt --file=build.mk", ("build.mk",)),
    ],
)
def test_words_that_look_like_a_file_or_are_asked_for_by_a_test_are_files(command: str, files: tuple[str, ...]) -> None:
    assert mentions_of_command(command).files == files


@pytest.mark.parametrize(
    ("command", "variables"),
    [
        ("echo $STAGE ${REGION:-eu}", ("STAGE", "REGION")),
        ("for f in *; do echo $f; done; X=1; echo $X $HOME", ()),
        ("read -r line; echo $line $SUBAGENTS_NB_RUN", ()),
    ],
)
def test_variables_that_a_command_did_not_set_itself_are_asked_for(command: str, variables: tuple[str, ...]) -> None:
    assert mentions_of_command(command).variables == variables


@pytest.mark.parametrize("command", ["git diff", "cd x && git -C y status", "git branch | wc -l"])
def test_git_is_asked_about_more_than_the_last_commit(command: str) -> None:
    assert mentions_of_command(command).git
    assert not mentions_of_command("git log --oneline; cat .gitignore a.git; git show HEAD").git


def test_code_names_files_by_its_texts_and_variables_where_it_asks_for_them() -> None:
    code = 'import os\nos.path.exists("later.txt"); open(f"out-{1}.csv")\nos.environ["STAGE"], os.getenv("A")'
    assert mentions_of_code(code) == Mentions(("later.txt",), ("STAGE", "A"), git=False)
    assert mentions_of_code('subprocess.run(["git", "status"])').git
    assert mentions_of_code("%matplotlib inline\nopen('a.txt')") == Mentions()
