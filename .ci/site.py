"""Build the site: `make docs`, to build/site. What it shows lies in README.md, docs/, notebooks/ and docstrings."""

from __future__ import annotations

import importlib
import json
import pkgutil
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import subagents_nb  # noqa: E402
from subagents_nb.domain.values.base import Document  # noqa: E402

BUILD = ROOT / "build"
SOURCE = BUILD / "site-source"
MERMAID = "mermaid@11.12.1"
SECTIONS = {
    "Begin": "notebooks/01_quickstart notebooks/02_chains notebooks/03_data_analysis notebooks/04_experiments "
    "notebooks/05_agents",
    "How to": "docs/running docs/board docs/full docs/chains docs/data docs/reuse docs/experiments docs/exporting "
    "docs/agents docs/skills docs/memory docs/refine docs/models docs/policy docs/trust docs/sandbox docs/tree "
    "docs/mcp docs/hosts docs/troubleshooting",
    "Reference": "reference docs/verbs docs/options docs/states docs/format docs/safety docs/differences",
    "The project": "CONTRIBUTING CHANGELOG",
}


def documents() -> Iterator[type[Document]]:
    """Return every kind of record that the store holds, by name."""
    for module in pkgutil.walk_packages(subagents_nb.domain.__path__, "subagents_nb.domain."):
        importlib.import_module(module.name)
    found, left = {}, [Document]
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        if isinstance(kind.model_fields["kind"].default, str) and kind.__module__.startswith("subagents_nb.domain"):
            found[kind.__name__] = kind
    return iter(found[name] for name in sorted(found))


def lay_out() -> None:
    """Lay the sources out as they lie in the repository, so that every link between them holds."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    (SOURCE / "_static" / "schemas").mkdir(parents=True)
    for folder, ends in (("docs", "*.md"), ("docs/pictures", "*.png"), ("notebooks", "*.ipynb")):
        (SOURCE / folder).mkdir(exist_ok=True)
        for file in ROOT.joinpath(folder).glob(ends):
            shutil.copy(file, SOURCE / folder)
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, SOURCE)
    shutil.copy(ROOT / "docs" / "site" / "conf.py", SOURCE)
    trees = "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages.split()) + "\n```\n"
        for caption, pages in SECTIONS.items()
    )
    (SOURCE / "index.md").write_text(ROOT.joinpath("README.md").read_text("utf-8") + trees, "utf-8")
    (SOURCE / "reference.md").write_text(reference(), "utf-8")
    for kind in documents():
        schema = json.dumps(kind.model_json_schema(), indent=2)
        (SOURCE / "_static" / "schemas" / f"{kind.__name__}.json").write_text(schema, "utf-8")


def reference() -> str:
    """Return the page of all that Python code may call, from its docstrings."""
    names = [name for name in subagents_nb.__all__ if not name.endswith("_ipython_extension")]
    rows = [
        f".. auto{'class' if isinstance(getattr(subagents_nb, name), type) else 'function'}:: subagents_nb.{name}"
        + ("\n   :members:\n   :inherited-members:" if isinstance(getattr(subagents_nb, name), type) else "")
        for name in names
    ]
    errors = [".. automodule:: subagents_nb.errors\n   :members:"]
    return f"# In Python\n\n{_rst(rows)}\n## Errors\n\n{_rst(errors)}"


def _rst(lines: list[str]) -> str:
    return "```{eval-rst}\n" + "\n\n".join(lines) + "\n```\n"


def fetch_mermaid() -> None:
    """Have Mermaid lie beside the pages, so that their drawings need no network."""
    kept = BUILD / "mermaid" / "package" / "dist" / "mermaid.min.js"
    if not kept.exists():
        folder = BUILD / "mermaid"
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([_tool("npm"), "pack", "--silent", "--pack-destination", folder, MERMAID], check=True)
        subprocess.run([_tool("tar"), "-xzf", next(folder.glob("*.tgz")), "-C", folder], check=True)
    shutil.copy(kept, SOURCE / "_static")


def _tool(name: str) -> str:
    return shutil.which(name) or sys.exit(f"{name} is needed to build the site.")


if __name__ == "__main__":
    lay_out()
    fetch_mermaid()
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", SOURCE, BUILD / "site"]
    sys.exit(subprocess.run(command, check=False, cwd=ROOT).returncode)
