"""The widget's modules become one text, and every one of them is packed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from subagents_nb.notebook.page.assets import asset, joined

ROOT = Path(__file__).parents[3]


def test_imports_from_each_other_and_exports_go_and_the_default_stays() -> None:
    first = "// first\nexport const one = 1;\nexport function two() {}\nexport class Three {}\nconst mine = 4;\n"
    second = (
        'import { one, two } from "./first.js";\nimport {\n  Three,\n} from "./first.js";\nexport default { one };\n'
    )
    assert joined(first, second) == (
        "const one = 1;\nfunction two() {}\nclass Three {}\nconst mine = 4;\nexport default { one };\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        'import { one } from "https://cdn.example/first.js";',
        'import * as all from "./first.js";',
        'import "./first.js";',
        'import { one } from "../first.js";',
    ],
)
def test_any_other_import_is_a_fault(line: str) -> None:
    with pytest.raises(ValueError, match="can't be put together: import"):
        joined(f"{line}\nexport default {{}};\n")


def test_what_only_looks_like_an_export_an_import_or_a_comment_stays() -> None:
    text = 'const said = "export it";\nconst two = "2 // import me";\nconst s = "/** no */";\nconst u = `a // b`;\n'
    assert joined(text) == text


def test_comments_behind_code_and_types_within_it_do_not_go_to_the_page() -> None:
    text = 'const two = 2; // import me\n/** @type {X[]} */ let z = "//";\nlet b = /** @type {any} */ (z);\n'
    assert joined(text) == 'const two = 2;\nlet z = "//";\nlet b = (z);\n'


def test_comments_on_lines_of_their_own_do_not_go_to_the_page() -> None:
    text = '/** @typedef {import("./dom.js").Tool} Tool */\n// export me\nlet a;\n  /**\n   * b\n   */\nlet b;\n'
    assert joined(text) == "let a;\nlet b;\n"


def test_neither_do_indentation_and_empty_lines_but_a_template_of_several_lines_is_refused() -> None:
    assert joined("if (a) {\n  const b = `${c}  d`;\n\n\n\tb();\n}\n") == "if (a) {\nconst b = `${c}  d`;\nb();\n}\n"
    with pytest.raises(ValueError, match="a template of several lines: const a = `b"):
        joined("const a = `b\n  c`;\n")


def test_a_file_that_is_missing_is_said() -> None:
    with pytest.raises(FileNotFoundError, match="install it again"):
        asset("nope.js")


def test_every_asset_is_packed() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assets = [path for path in (ROOT / "widgets").iterdir() if path.suffix in {".js", ".css"}]
    assert build["force-include"] == {f"widgets/{p.name}": f"subagents_nb/static/{p.name}" for p in assets}
