"""What `make check` asks of the structure itself: each fault is named with its place, and with what to do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2] / ".ci" / "house.py"

METHODS = "".join(f"    def do_{number}(self): ...\n" for number in range(13))
FAULTS = {
    "a string": ({"a/one.py": 'import_module("subagents_nb.b.two")'}, "one.py:1: imports a module of ours by a string"),
    "a relative string": ({"a/one.py": "import_module('.b', __package__)"}, "imports a module of ours by a string"),
    "a circle": (
        {"a/one.py": "from subagents_nb.a import two", "a/two.py": "def f():\n    import subagents_nb.a.one"},
        "subagents_nb.a.one -> subagents_nb.a.two",
    ),
    "a circle of rooms": (
        {"a/x.py": "import subagents_nb.b.y", "a/z.py": "", "b/w.py": "import subagents_nb.a.z", "b/y.py": ""},
        "These parts of subagents_nb import each other in a circle:",
    ),
    "a long module": ({"a/one.py": "pass\n" * 401}, "one.py: 401 lines; a module has 400 at most"),
    "a large class": ({"a/one.py": f"class Desk:\n{METHODS}"}, "Desk: 13 public methods; 12 are the end"),
    "a circle of packages in a room": (
        {
            "a/b/x.py": "import subagents_nb.a.c.y",
            "a/b/z.py": "",
            "a/c/w.py": "import subagents_nb.a.b.z",
            "a/c/y.py": "",
        },
        "These parts of subagents_nb.a import each other in a circle:",
    ),
    "a name": ({"a/one.py": "", "b/one.py": ""}, "one.py stands in a, b: a file is known by its name"),
    "a reference": ({"a/one.py": "# since ipykernel#1491"}, "one.py:1: an issue is told as owner/repository#123"),
    "an option by hand": (
        {f"{room}/{room}{i}.py": "def f(timeout): ..." for room in "ab" for i in range(12)},
        "24 modules name the option timeout; 23 are the end.",
    ),
    "a file": ({"a/one.py": "x = open(path)"}, "one.py:1: opens a file by hand"),
    "a path": ({"a/one.py": "Path(x).read_text()"}, "one.py:1: opens a file by hand"),
    "a descriptor": ({"a/one.py": "\nos.open(path, os.O_RDONLY)"}, "one.py:2: opens a file by hand"),
    "a permit that nobody needs": ({"a/one.py": "", "cli.py": ""}, "MAY_OPEN: cli.py opens nothing any more"),
    "a crowd": ({f"a/n{i}.py": "" for i in range(16)}, "subagents_nb/a: 16 names side by side; 15 are the end"),
}
FINE = {
    "__init__.py": 'importlib.import_module("subagents_nb.a.one")',
    "a/one.py": "if TYPE_CHECKING:\n    from subagents_nb.a import two",
    "a/open.py": "with open(fd) as file, DISK.open(path), open(os.devnull):\n    pass",
    "a/two.py": f"import subagents_nb.a.one\nclass Run:\n{METHODS}",
}


def check(place: Path, modules: dict[str, str]) -> subprocess.CompletedProcess[str]:
    for name, text in {"__init__.py": "", "a/__init__.py": "", "b/__init__.py": "", **modules}.items():
        path = place / "subagents_nb" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return subprocess.run([sys.executable, str(HOUSE)], cwd=place, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_is_named(what: str, tmp_path: Path) -> None:
    modules, told = FAULTS[what]
    done = check(tmp_path, modules)
    assert done.returncode == 1 and told in done.stderr


def test_what_is_fine_passes_in_silence(tmp_path: Path) -> None:
    done = check(tmp_path, FINE)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_messages_call_a_step_by_the_number_that_python_knows_it_by() -> None:
    told = re.compile(r"(?<![-/\w])[Ss]teps? \{")  # `step {index}` would be read from 1, and typed from 0
    package = Path(__file__).parents[2] / "subagents_nb"
    assert [path.name for path in package.rglob("*.py") if told.search(path.read_text())] == []
