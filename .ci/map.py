"""The map in CONTRIBUTING.md: the packages, what each takes and gives, and the path of a launch, drawn from the code.

`python .ci/map.py` writes it anew between its two marks; `--check`, as `make check` runs it, whether it is current.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path

import house

PAGE, BEGIN, END = Path("CONTRIBUTING.md"), "<!-- map: written by .ci/map.py -->", "<!-- end of map -->"

# Who hands a launch to whom. Each name is looked up in the code; the supervisor and the runner are other processes.
LAUNCH = (
    ("notebook/magics/magics.py", "SubagentMagics.launch", "the cell"),
    ("launching/front.py", "launch", "the call that cells, commands and sweeps come down to"),
    ("launching/composing/planned.py", "plan_launch", "gathers agents, settings and the launch environment"),
    ("planning/draft.py", "draft", "decides: a plan, or every reason against it"),
    ("launching/starting/start_run.py", "start_run", "writes the run directory and has it started"),
    ("supervisor/start.py", "start_runner", "asks the warm supervisor, or starts a runner itself"),
    ("supervisor/warm/process_table.py", "ProcessTable.start", "forks the runner, and will see it end"),
    ("runner/main.py", "run", "waits at its barrier until the launcher lets it begin"),
    ("runner/chains/chain_run.py", "ChainRun.carry_out", "the steps, their order and their places"),
    ("runner/engines/native/native.py", "NativeEngine.run", "one step, by pydantic-ai"),
    ("runner/journal/journal.py", "Journal.finish", "the result, written last"),
    ("launching/following/watch.py", "Watcher", "reads the files again and wakes who waits"),
    ("notebook/views/live.py", "LiveView", "tells the page"),
)


def main() -> int:
    """Write the map, or with `--check` say whether it is as the code is."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    page = f"{before}{BEGIN}\n\n{_map()}\n{END}{rest.partition(END)[2]}"
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    elif page != PAGE.read_text(encoding="utf-8"):
        print(f"{PAGE}: its map is not as the code is; run: python .ci/map.py", file=sys.stderr)
        return 1
    return 0


def _map() -> str:
    packages = sorted(path.parent.name for path in Path(house.PACKAGE).glob("*/__init__.py"))
    arrows = _arrows({*packages, "cli"})
    drawn = "\n".join(f"    {one} --> {other}" for one in sorted(arrows) for other in sorted(arrows[one]))
    rows = "\n".join(f"| `{one}` | " + " | ".join(_said(one)) + " |" for one in packages)
    path = "\n".join(f"{number}. `{file}` `{name}`: {why}" for number, (file, name, why) in enumerate(_launch(), 1))
    return (
        f"```mermaid\nflowchart TD\n{drawn}\n    supervisor -. starts .-> runner\n```\n\n"
        "An arrow is an import; what is reached by a longer way is not drawn again. Dotted: another process.\n\n"
        f"| package | its job | in | out | never |\n| --- | --- | --- | --- | --- |\n{rows}\n\n"
        f"Packages inside packages:\n\n{_inside()}\n\n"
        f"The path of a launch:\n\n{path}\n"
    )


def _arrows(shown: set[str]) -> dict[str, set[str]]:
    """Return which packages import which, without those that are reached by way of another."""
    into: dict[str, set[str]] = defaultdict(set)
    for name, others in house.graph().items():
        room = "cli" if name.split(".")[1].startswith("cli") else name.split(".")[1]
        into[room] |= {other.split(".")[1] for other in others} & shown - {room}
    beyond = {one: house.reached(into, one) for one in shown}
    return {
        one: {other for other in into[one] if not any(other in beyond[third] for third in into[one])} for one in shown
    }


def _said(package: str) -> tuple[str, ...]:
    """Return a package's job, what it takes, gives and never does, from its docstring."""
    told = ast.get_docstring(house.MODULES[Path(house.PACKAGE, package, "__init__.py")]) or ""
    lines = told.splitlines()
    found = dict(line.split(": ", 1) for line in lines if line.startswith(("In: ", "Out: ", "Never: ")))
    if found.keys() != {"In", "Out", "Never"}:
        sys.exit(f"{house.PACKAGE}/{package}/__init__.py: its docstring has to say what goes In, comes Out, and Never.")
    return (lines[0].rstrip("."), *(found[name].rstrip(".") for name in ("In", "Out", "Never")))


def _inside() -> str:
    """Return a line for each package within a package, with the first line of its docstring."""
    root = Path(house.PACKAGE)
    inside = [path.parent for path in sorted(root.rglob("*/__init__.py")) if path.parent.parent != root]
    told = {one: (ast.get_docstring(house.MODULES[one / "__init__.py"]) or "").splitlines() for one in inside}
    for one, lines in told.items():
        if not lines:
            sys.exit(f"{one}/__init__.py: its docstring has to say what the package holds.")
    return "\n".join(f"- `{one.relative_to(root).as_posix()}`: {lines[0].rstrip('.')}" for one, lines in told.items())


def _launch() -> tuple[tuple[str, str, str], ...]:
    for file, name, _ in LAUNCH:
        body = house.MODULES[Path(house.PACKAGE, file)].body
        for part in name.split("."):
            node = next((one for one in body if getattr(one, "name", None) == part), None)
            if node is None:
                sys.exit(f".ci/map.py: {file} has no {name}; who takes a launch further there now?")
            body = getattr(node, "body", [])
    return LAUNCH


if __name__ == "__main__":
    sys.exit(main())
