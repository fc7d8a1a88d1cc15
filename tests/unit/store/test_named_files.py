"""Which files of a project a server's command line names: as it is started, whatever spelling leads there."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from subagents_nb.domain.agents.mcp_servers import McpServer
from subagents_nb.domain.mcp.definitions import MOST_WORDS
from subagents_nb.store.files.named_files import NamedFiles, files_named, look_at

VARIABLES = {"PATH": "/usr/bin:/bin", "WHERE": "tools", "EMPTY": ""}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "project"
    for path in ("tools/srv.py", "tools/pkg/__main__.py", "site/index.js", "srv.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    return root


def named(project: Path, here: str = ".", **definition: Any) -> set[str]:
    server = McpServer.model_validate({"name": "x", "command": "python", **definition})
    return set(files_named(server, VARIABLES, here=project / here, roots=(project,)))


@pytest.mark.parametrize(
    "definition",
    [
        {"args": ["tools/srv.py"]},
        {"args": ["./tools/../tools//srv.py"]},
        {"args": ["${DIR}/srv.py"], "env": {"DIR": "tools"}},
        {"args": ["${DIR}/srv.py"], "env": {"DIR": "${WHERE}"}},
        {"args": ["${DIR:-tools}/srv.py"]},
        {"args": ["${DIR:-other}/srv.py"], "env": {"DIR": "${EMPTY:-tools}"}},
        {"args": ["--config=tools/srv.py"]},
        {"args": ["file://{project}/tools/srv.py"]},
        {"command": "sh", "args": ["-c", "cd /; exec python '{project}/tools/srv.py' --port 1"]},
        {"command": "sh", "args": ["-c", "exec\npython tools/srv.py"]},
        {"command": "sh", "args": ["-c", "python $S"], "env": {"S": "tools/srv.py"}},
        {"command": "sh", "args": ["-c", "exec python $PWD/tools/srv.py"]},
        {"command": "sh", "args": ["-c", 'exec python "$(dirname "$0")/tools/srv.py"']},
        {"command": "sh", "args": ["-c", "exec python to\\ols/srv.py"]},
        {"command": "python", "args": ["/proc/self/cwd/tools/srv.py"]},
        {"command": "uv", "args": ["run", "--directory", "tools", "srv.py"]},
        {"args": ["-m", "tools.srv"]},
        {"args": ["-Bmtools.srv"]},
        {"command": "sh", "args": ["-c", "exec python -m tools.srv"]},
        {"args": ["-m", "srv"], "env": {"PYTHONPATH": "tools"}},
        {"command": "srv.py", "env": {"PATH": "./tools:${PATH}"}},
        {"command": "env", "args": ["srv.py"], "env": {"PATH": "${PATH}:tools"}},
        {"env": {"NODE_OPTIONS": "--require ./tools/srv.py"}},
        {"args": ["srv.py"], "cwd": "tools"},
        {"args": ["srv.py"], "cwd": "~/project/tools"},
        {"args": ["srv.py"], "cwd": "${DIR}", "env": {"DIR": "tools"}},
        {"command": "~/project/tools/srv.py"},
        {"command": "sh", "args": ["-c", "python tools/s*.py"]},
        {"command": "sh", "args": ["-c", "python t*/sr?.py; exit"]},
        {"command": "sh", "args": ["-c", "python to''ols/srv.py; exit"]},
        {"command": "sh", "args": ["-c", "python tools/s\\rv.py&&exit"]},
        {"args": ["-c", "import tools.srv"]},
        {"args": ["-c", "from tools.srv import main; main()"]},
    ],
    ids=str,
)
def test_a_file_is_seen_wherever_it_is_named(project: Path, definition: dict[str, Any]) -> None:
    def put(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{project}", str(project))
        return [put(one) for one in value] if isinstance(value, list) else value

    assert "tools/srv.py" in named(project, **{key: put(value) for key, value in definition.items()})


@pytest.mark.parametrize(
    "args", [["my srv.py"], ["--config=my srv.py"], ["-c", "exec 'my srv.py'"], ["-c", "exec my\\ srv.py"]], ids=str
)
def test_so_is_one_with_blanks_in_its_name(project: Path, args: list[str]) -> None:
    (project / "my srv.py").write_text("mine")
    assert "my srv.py" in named(project, command="sh", args=args)


def test_what_a_folder_or_a_package_starts_is_seen(project: Path) -> None:
    assert named(project, command="node", args=["site"]) == {"site/index.js"}
    assert "tools/pkg/__main__.py" in named(project, args=["-m", "tools.pkg"])
    assert "srv.py" in named(project, "tools", args=["../srv.py"])
    assert named(project, args=["-c", "print(1)"]) == set() == named(project, command=None, url="http://x/srv.py")


def test_what_servers_work_on_is_no_part_of_them(project: Path) -> None:
    (project / "package.json").write_text("{}")
    assert named(project, command="server-filesystem", args=[".", "tools"]) == set()
    (project / "data.db").write_bytes(b"SQLite format 3\0" + b"x" * 5_000)
    assert named(project, args=["-m", "sqlite_server", "--db", "data.db"]) == set()
    with zipfile.ZipFile(project / "data.db", "a") as archive:
        archive.writestr("__main__.py", "print('run')")
    assert named(project, args=["data.db"]) == {"data.db"}, "a program behind the head of a database"


HEADS = {"DUCK": b"#1234567DUCK\nprint('run')\n", "SQLite": b"SQLite format 3\0\necho run; exit\n"}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(
    "definition",
    [
        {"args": ["srv.py"]},
        {"command": "sh", "args": ["data.db"]},
        {"command": "sh", "args": ["-c", "sh data.db"]},
        {"command": "sh", "args": ["-c", "sh $DB"], "env": {"DB": "data.db"}},
        {"command": "./data.db"},
        {"command": "my-server", "args": ["data.db"]},
        {"command": "node", "args": ["--db", "data.db"]},
        {"args": ["-m", "x", "--db", "srv.py"]},
        {"args": ["-m", "x", "--db", "data.db", "--config", "data.db"]},
        {"args": ["-m", "x", "--db", "exec.db"]},
        {"args": ["-m", "x"], "env": {"PYTHONSTARTUP": "data.db"}},
    ],
    ids=str,
)
def test_no_beginning_lets_a_program_pass_for_a_database(project: Path, head: str, definition: dict[str, Any]) -> None:
    for name in ("srv.py", "data.db", "exec.db"):
        (project / name).write_bytes(HEADS[head])
    (project / "exec.db").chmod(0o700)
    assert named(project, **definition), "compared as any other file is"


def looked(project: Path, command: str, *args: str, env: dict[str, str] | None = None, here: str = ".") -> NamedFiles:
    server = McpServer(name="x", command=command, args=args, env=env or {})
    return look_at(server, VARIABLES, here=project / here, roots=(project,))


@pytest.mark.parametrize(
    "way", [("--db", "data.db"), ("--db-path=./data.db",), ("--sqlite", "{project}/data.db")], ids=str
)
def test_a_database_that_is_named_as_one_is_said_to_be_left_out(project: Path, way: tuple[str, ...]) -> None:
    (project / "data.db").write_bytes(b"SQLite format 3\0")
    args = [word.replace("{project}", str(project)) for word in way]
    assert looked(project, "db-server", *args) == NamedFiles({}, ("data.db",))
    assert looked(project, "db-server", env={"DATABASE_PATH": "data.db"}) == NamedFiles({}, ("data.db",))


RUNNERS = {
    "package.json": [("npm", "start"), ("npx", "srv"), ("npx", "."), ("bun", "run", "x"), ("sh", "-c", "npm start; x")],
    "package-lock.json": [("npm", "start"), ("npx", "-y", "srv")],
    "node_modules/.bin/srv": [("npx", "srv"), ("bunx", "srv")],
    "pyproject.toml": [("uv", "run", "srv"), ("uvx", "--from", ".", "srv")],
    "uv.lock": [("uv", "run", "srv")],
    "bun.lock": [("bun", "run", "x")],
    "deno.json": [("deno", "task", "x")],
    "Makefile": [("make", "serve"), ("env", "-C", ".", "make")],
    "index.ts": [("node", "index"), ("bun", "./index")],
}


@pytest.mark.parametrize("entry", RUNNERS)
def test_what_a_runner_reads_to_know_what_it_starts_is_compared(project: Path, entry: str) -> None:
    (project / entry).parent.mkdir(parents=True, exist_ok=True)
    (project / entry).write_text("{}")
    for line in RUNNERS[entry]:
        assert entry in looked(project, *line).files, line
    if entry in ("package.json", "pyproject.toml", "deno.json", "Makefile"):
        found = looked(project, *RUNNERS[entry][0], here="tools")
        assert entry in found.files and found.unseen == (f"what {entry} starts",), "a folder above"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("sh", "-c", "X=srv; python $X.py"), "what a shell makes of $X.py"),
        (("bash", "-c", "python {srv,}.py"), "what a shell makes of {srv,}.py"),
        (("bash", "-c", r"python $'srv\x2epy'"), r"what a shell makes of $'srv\x2epy'"),
        (("sh", "-c", "python `cat which`"), "what a shell makes of `cat which`"),
        (("sh", "-c", 'python "$(cat which)"'), 'what a shell makes of $(cat which)"'),
        (("python", "-c", "import runpy"), "what the code in its command line reads"),
        (("sh", "-c", "exec node -e 0"), "what the code in its command line reads"),
        (("perl", "-Ilib", "-Mserver", "x.pl"), "the modules that it is told to load"),
        (("sh", "-c", "python */*/*/srv.py"), "what its patterns mean"),
    ],
)
def test_what_leads_to_no_file_is_said_rather_than_guessed(project: Path, line: tuple[str, ...], said: str) -> None:
    assert looked(project, *line).unseen == (said,)


@pytest.mark.parametrize(
    "line",
    [
        ("python", "srv.py"),
        ("sh", "-c", "exec python $PWD/srv.py"),
        ("sh", "-c", 'exec "$@"', "-", "x"),
        ("npx", "-y", "s"),
    ],
)
def test_nothing_is_said_of_what_is_seen_whole(project: Path, line: tuple[str, ...]) -> None:
    assert looked(project, *line).unseen == ()


def test_a_pattern_lists_nothing_beyond_the_project(project: Path) -> None:
    (project.parent / "other").mkdir()
    (project.parent / "other/x1.py").write_text("x")
    assert looked(project, "sh", "-c", "python ../other/x*.py; python ../*/x1.p?").files == {}


def test_a_crowd_of_patterns_is_said_and_not_listed(project: Path) -> None:
    found = looked(project, "sh", "-c", " ".join(f"*/w{number}*" for number in range(190)))
    assert found == NamedFiles({}, ("what its patterns mean",))


def test_a_link_counts_by_where_it_leads(project: Path, tmp_path: Path) -> None:
    (project / "inner.py").symlink_to("tools/srv.py")
    (tmp_path / "out").mkdir()
    for name in ("a.py", "b.py"):
        (tmp_path / "out" / name).write_text("same")
    (project / "outer.py").symlink_to("../out/a.py")
    (project / "folder").symlink_to("../out")

    def hashes(*args: str) -> dict[str, str]:
        return files_named(McpServer(name="x", command="y", args=args), {}, here=project, roots=(project,))

    assert set(hashes("inner.py")) == {"tools/srv.py"}
    before = hashes("outer.py", "folder/a.py")
    assert set(before) == {"outer.py", "folder/a.py"}
    (project / "outer.py").unlink()
    (project / "outer.py").symlink_to("../out/b.py")
    after = hashes("outer.py", "folder/a.py")
    assert after["outer.py"] != before["outer.py"] and after["folder/a.py"] == before["folder/a.py"]


def test_hostile_texts_hold_nobody_up(project: Path) -> None:
    many = " ".join(f"w{number}" for number in range(MOST_WORDS - 20))
    texts = ["\0srv.py", "x" * 100_000, many, "/dev/zero", "/", "..", "", "'", "srv.py"]
    assert named(project, args=texts) == {"srv.py"}, "and no crowd of words hides one"
