"""What no linter sees: imports by a string, circles, what grows too large, file names that stand twice.

Run by `make check`, from the checkout.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "subagents_nb"
MODULES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(Path(PACKAGE).rglob("*.py"))}

# The front door and the local model load a name when it is first used; the supervisor knows the runner by its entry.
MAY_IMPORT_BY_STRING = {
    f"{PACKAGE}/__init__.py",
    f"{PACKAGE}/local_model/__init__.py",
    f"{PACKAGE}/supervisor/host.py",
    f"{PACKAGE}/supervisor/warm/process_table.py",
}
# Who opens files without `store/files`, which opens plain files alone, at once, bounded, and through no link.
MAY_OPEN = {
    "cli.py": "what the person names in a terminal, a pipe too",
    "catalog/agent_files.py": "the package's own files",
    "notebook/page/assets.py": "the package's own files",
    "local_model/": "its own cache; it does not know the store",
    "signals.py": "the system's files",
    "prctl.py": "the system's files",
    "store/clock.py": "the system's files",
    "store/processes/process_list.py": "the system's files",
    "supervisor/processes/identity.py": "the system's files",
    "launching/stored/doctor.py": "the system's files",
    "store/files/": "the openers",
    "store/runs/raw_reader.py": "thousands of documents, by the opener's flags",
    "store/waiting/capacity.py": "each place of a launch, by the opener's flags",
    "runner/sandbox/mounts.py": "the system's files",
    "runner/sandbox/mounted.py": "the system's files",
    "runner/engines/kernel/process.py": "a folder, to name sockets in it",
    "runner/workspace/confined.py": "new files, in folders that the opener opened",
    "supervisor/shim.py": "before it imports anything",
    "supervisor/warm/hostlock.py": "before it imports anything",
    "runner/engines/kernel/noting.py": "in a step's kernel, with the standard library alone",
    "runner/engines/kernel/preload.py": "in a step's kernel, with the standard library alone",
    "runner/engines/tools/searcher.py": "a program with the standard library alone",
}
MOST_LINES, MOST_METHODS, MOST_NAMES = 400, 12, 15
# An option is a row of a table, and nobody carries it on by hand: modules that name one, the deadline of a run, hold
# it, decide by it or show it. In these the word is how long a caller waits, or how long a command may take.
OPTION, MOST_WITH_AN_OPTION = {"timeout", "timeout_s"}, 23
ANOTHER = {
    f"{PACKAGE}/{name}.py" for name in (
        "domain/plans/acceptance", "experiments/sweeps/sweep", "launching/handle", "launching/wait_all",
        "planning/acceptance/acceptance_models", "runner/steps/verifying",
    )
}  # fmt: skip


def main() -> int:
    """Print every fault in a line; return 1 if there is one."""
    faults = [
        *_strings(),
        *_circles(),
        *_sizes(),
        *_shared_names(),
        *_crowds(),
        *_references(),
        *_carriers(),
        *_openers(),
    ]
    print("\n".join(faults), file=sys.stderr if faults else sys.stdout)
    return int(bool(faults))


def _name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _strings() -> Iterator[str]:
    for path, tree in MODULES.items():
        if path.as_posix() in MAY_IMPORT_BY_STRING:
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or "import" not in ast.unparse(node.func):
                continue
            told = "".join(ast.unparse(one) for one in node.args)
            if PACKAGE in told or "__name__" in told or "__package__" in told:
                yield (
                    f"{path}:{node.lineno}: imports a module of ours by a string, which hides it from import-linter. "
                    f"What stands above is registered in {PACKAGE}/__init__.py and called by `above`."
                )


def _imports(tree: ast.AST) -> Iterator[str]:
    """Yield what is imported when it runs, within functions too; what only types need is no dependency."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{one.name}" for one in node.names)
        yield from _imports(node)


def graph() -> dict[str, set[str]]:
    """Return which modules each module imports, within functions too."""
    names = {_name(path) for path in MODULES}

    def known(name: str) -> str:
        while name and name not in names:
            name = name.rpartition(".")[0]
        return name

    graph = {_name(path): {known(name) for name in _imports(tree)} for path, tree in MODULES.items()}
    # Python runs the front door before any other module, and the front door loads names when they are used.
    return {name: into - {"", PACKAGE, name} for name, into in graph.items() if name != PACKAGE}


def _circles() -> Iterator[str]:
    """Yield circles among modules, and in each folder among what stands side by side: modules and packages."""
    modules = graph()
    yield from _told("modules", modules)
    for folder in sorted({_name(path.parent) for path in MODULES}):
        inside: dict[str, set[str]] = defaultdict(set)
        depth = folder.count(".") + 1
        for name in (one for one in modules if one.startswith(f"{folder}.")):
            entry = name.split(".")[depth]
            into = (one.split(".")[depth] for one in modules[name] if one.startswith(f"{folder}."))
            inside[entry] |= {*into} - {entry}
        yield from _told(f"parts of {folder}", inside)


def _told(what: str, arrows: dict[str, set[str]]) -> Iterator[str]:
    for circle in _tied(arrows):
        lines = [f"  {one} -> {', '.join(sorted(arrows[one] & circle))}" for one in sorted(circle)]
        yield "\n".join([f"These {what} import each other in a circle:", *lines])


def _tied(arrows: dict[str, set[str]]) -> Iterator[frozenset[str]]:
    """Yield the groups of names of which each leads to all others."""
    beyond = {start: reached(arrows, start) for start in arrows}
    groups = {frozenset(one for one in found if start in beyond.get(one, ())) for start, found in beyond.items()}
    return (group for group in groups if len(group) > 1)


def reached(arrows: dict[str, set[str]], start: str) -> set[str]:
    """Return where the arrows from a name lead, by any number of steps."""
    found: set[str] = set()
    left = [start]
    while left:
        new = arrows.get(left.pop(), set()) - found
        found |= new
        left.extend(new)
    return found


def _sizes() -> Iterator[str]:
    for path, tree in MODULES.items():
        if (lines := path.read_text(encoding="utf-8").count("\n")) > MOST_LINES:
            yield f"{path}: {lines} lines; a module has {MOST_LINES} at most. Which of its jobs is another module's?"
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef) or node.name == "Run":
                continue
            methods = {one.name for one in node.body if _is_public_method(one)}
            if len(methods) > MOST_METHODS:
                yield f"{path}:{node.lineno}: {node.name}: {len(methods)} public methods; {MOST_METHODS} are the end."


def _is_public_method(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
        return False
    return not any("property" in ast.unparse(one) for one in node.decorator_list)


def _shared_names() -> Iterator[str]:
    places = defaultdict(list)
    for path in MODULES:
        places[path.name].append(path.parent.as_posix().removeprefix(f"{PACKAGE}/"))
    for name, where in sorted(places.items()):
        if len(where) > 1 and name not in {"__init__.py", "__main__.py"}:
            yield f"{name} stands in {', '.join(where)}: a file is known by its name; name them apart."


def _crowds() -> Iterator[str]:
    """Yield the packages that a newcomer opens and can't take in; the front door has the layers themselves."""
    folders = defaultdict(set)
    for path in MODULES:
        folders[path.parent].add(path.name)
        folders[path.parent.parent].add(path.parent.name)
    for folder, names in folders.items():
        if len(names - {"__init__.py"}) > MOST_NAMES and folder.as_posix() != PACKAGE:
            yield f"{folder}: {len(names) - 1} names side by side; {MOST_NAMES} are the end. Which belong together?"


def _references() -> Iterator[str]:
    """Yield the issues that are not told in the one form by which they are found, here and with a search engine."""
    other = re.compile(r"github\.com/[^/\s]+/[^/\s]+/(?:issues|pull)/\d|(?<![\w./-])[A-Za-z][\w-]+#\d{3}")
    for path in [*MODULES, *sorted(Path("widgets").glob("*.js"))]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if other.search(line):
                yield f"{path}:{number}: an issue is told as owner/repository#123."


def _carriers() -> Iterator[str]:
    found = [path.as_posix() for path, tree in MODULES.items() if any(map(_names_the_option, ast.walk(tree)))]
    found = [path for path in found if path not in ANOTHER]
    if len(found) > MOST_WITH_AN_OPTION:
        yield (
            f"{len(found)} modules name the option timeout; {MOST_WITH_AN_OPTION} are the end. What carries options on "
            f"goes by their table (domain/plans/options.py): {', '.join(found)}"
        )


def _names_the_option(node: ast.AST) -> bool:
    """Whether it names the option; a keyword of a library's function is none, nor is the reason of an end."""
    match node:
        case ast.Attribute(value=ast.Name(id="asyncio")):
            return False
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return name in OPTION
        case ast.Constant(value=text):
            return text == "timeout_s"
    return False


def _openers() -> Iterator[str]:
    """Yield where a file is opened by hand. What a project, an archive, an agent or a page brings may be a trap."""
    used = set()
    for path, tree in MODULES.items():
        place = path.relative_to(PACKAGE).as_posix()
        allowed = {one for one in MAY_OPEN if place.startswith(one)}
        for line in (node.lineno for node in ast.walk(tree) if isinstance(node, ast.Call) and _opens(node)):
            used |= allowed
            if not allowed:
                yield f"{path}:{line}: opens a file by hand. DISK reads what is ours, read_plain whatever else."
    idle = (place for place in MAY_OPEN.keys() - used if (Path(PACKAGE) / place).exists())
    yield from (f"MAY_OPEN: {place} opens nothing any more" for place in idle)


def _opens(call: ast.Call) -> bool:
    owner, _, name = ast.unparse(call.func).rpartition(".")
    given = ast.unparse(call.args[0]) if call.args else ""
    if name == "open" and owner.rpartition(".")[2] in ("", "os"):
        return given not in ("os.devnull", "fd", "handle", "int(number)")  # descriptors that are open already
    owns = owner.rpartition(".")[2] in ("DISK", "disk", "_disk", "archive")
    return name in ("read_text", "read_bytes") or (name == "open" and not owns)


if __name__ == "__main__":
    sys.exit(main())
