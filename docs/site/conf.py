"""How Sphinx builds the site; `.ci/site.py` lays its sources out and starts it."""

from __future__ import annotations

from html import escape
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive

from subagents_nb import __version__

project, author, release = "subagents-nb", "the authors of subagents-nb", __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
html_theme, html_title = "furo", f"subagents-nb {release}"
html_static_path = ["_static"]
html_js_files = ["mermaid.min.js"]
templates_path: list[str] = []
exclude_patterns = ["_static"]
myst_heading_anchors = 3
myst_fence_as_directive = ["mermaid"]
nb_execution_mode = "off"  # the notebooks hold their outputs; the tests execute them
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]  # no kernel is behind it
autodoc_member_order = "bysource"
autodoc_typehints = "description"
suppress_warnings = [
    "mystnb.unknown_mime_type",
    "misc.highlighting_failure",  # cells begin with magics, settings are cut short
]


class Mermaid(Directive):
    """A drawing in Mermaid's words, drawn by the copy of Mermaid beside the pages: no network is asked."""

    has_content: ClassVar[bool] = True

    def run(self) -> list[nodes.Node]:
        """Return the words as they are; without scripts they are what one reads."""
        words = escape("\n".join(self.content))
        return [nodes.raw("", f'<pre class="mermaid">{words}</pre>', format="html")]


def setup(app: Any) -> None:
    """Tell Sphinx of the drawings."""
    app.add_directive("mermaid", Mermaid)
