"""Lists of runs and of agents."""

from __future__ import annotations

from card_page import Page, agents_table_html, agents_table_text, runs_table_html, runs_table_text
from card_samples import FINDINGS, answered, asking, ended, gave, lost, queued, refused, running, unreadable
from support import run_id

from subagents_nb.domain.agents.agent import AgentCatalog, AgentDefinition, AgentProblem, SearchedPlace
from subagents_nb.domain.agents.attention import Attention
from subagents_nb.domain.runs.records import Usage
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.runs.tree_rows import TreeRow

RUNS = [
    running(),
    running(state=RunState.QUEUED, name="sweep-7", steps=(), usage=Usage(), elapsed_s=0.0),
    gave(FINDINGS),
    answered("Four findings.\nMore."),
    ended("failed", reason="auth", actor="provider", error="401 Unauthorized. Look at the key."),
    lost(),
    unreadable(),
]
CATALOG = AgentCatalog(
    agents=(
        AgentDefinition(name="scout", description="Looks.", aliases=("look",), source="builtin", where="scout.md"),
        AgentDefinition(
            name="mute", description="No tools.", source="user", tools=(), model="openai:gpt-5", thinking="high"
        ),
    ),
    problems=(AgentProblem(where=".subagents/bad.md", source="project", error="line 3: unknown key"),),
    shadowed=(("project:scout", "builtin:scout"),),
)


def test_the_head_counts_live_queued_ended_unreadable_and_hidden() -> None:
    head = "1 live · 1 queued · 4 ended · 1 unreadable · 128 not shown"
    assert f"Runs {head}" in Page(runs_table_html(RUNS, hidden=128)).text
    assert runs_table_text(RUNS, hidden=128).startswith(head + "\n")


def test_a_row_says_the_state_by_sign_and_word_and_what_the_run_does_now() -> None:
    text = Page(runs_table_html(RUNS)).text
    assert "↻ running find-outliers scout anthropic:claude-sonnet grep 0:42 18.9k / 1.6k $0.081" in text
    assert "complete find-outliers scout anthropic:claude-sonnet object, 3 items 1:04" in text
    assert "Four findings. 1:04" in text
    assert "401 Unauthorized. 1:04" in text
    assert "? unreadable r-06f3k2m9 status.json can't be read: not JSON at line 3" in text


def test_runs_that_ask_are_counted_first_and_their_question_is_what_they_do_now() -> None:
    runs = [running(), asking(), asking("Which?"), queued()]
    assert runs_table_text(runs).startswith("2 ask you · 3 live · 1 queued · 0 ended\n")
    assert runs_table_text(runs[:2]).startswith("1 asks you · 2 live · 0 queued · 0 ended\n")
    text = Page(runs_table_html(runs)).text
    assert "‖ asks you find-outliers scout anthropic:claude-sonnet “Keep the old name as an alias?” 0:42 18.9k" in text
    assert "◷ queued find-outliers scout anthropic:claude-sonnet waits for a free place" in text


def test_a_question_of_a_child_counts_once_in_the_list() -> None:
    child = asking().model_copy(update={"run_id": run_id(9)})
    own = child.status.questions if child.status is not None else ()
    row = TreeRow(path="leaf", run_id=run_id(9), agent="scout", questions=own)
    root = running(name="lead-1", tree=(row,)).model_copy(update={"run_id": run_id(7)})
    assert runs_table_text([child, root]).startswith("1 asks you · 2 live")
    silent = running(name="lead-1", tree=(row.model_copy(update={"questions": ()}),))
    assert runs_table_text([child, silent]).startswith("1 asks you · 2 live")


def test_a_run_that_another_one_started_says_of_which_tree_it_is() -> None:
    def row(number: int, path: str) -> TreeRow:
        return TreeRow(path=path, run_id=run_id(number), agent="scout")

    leaf = running(name="leaf-1").model_copy(update={"run_id": run_id(9)})
    mid = running(name="mid-1", tree=(row(9, "leaf"),)).model_copy(update={"run_id": run_id(8)})
    root = running(name="lead-1", tree=(row(8, "mid"), row(9, "mid/leaf"))).model_copy(update={"run_id": run_id(7)})
    told = runs_table_text([leaf, mid, root]).splitlines()[2:]
    assert ["below lead-1" in text for text in told] == [True, True, False]
    assert "below" not in runs_table_text([leaf])


def test_a_live_run_that_may_need_a_look_says_why() -> None:
    seen = Attention(kind="long-tool", text="The tool bash is at work for 4 min.", since_s=2.0)
    assert "The tool bash is at work for 10 min." in runs_table_text([running(attention=seen, elapsed_s=602.0)])


def test_the_table_has_a_caption_and_headings_for_columns() -> None:
    page = Page(runs_table_html(RUNS))
    assert page.tags.count("caption") == 1
    assert page.attributes.count(("th", "scope", "col")) == 8


def test_figures_line_up_in_plain_text_even_beside_wide_characters() -> None:
    wide = running(name="漢字")
    lines = runs_table_text([running(), wide]).split("\n")
    assert lines[1].split() == ["state", "name", "agent", "model", "now", "elapsed", "tokens", "cost"]
    at = lines[2].index("scout")
    assert lines[3].index("scout") == at - 2
    assert len(lines) == 4


def test_no_runs_is_said_in_a_sentence() -> None:
    assert "No run to show." in Page(runs_table_html([])).text
    assert runs_table_text([]) == "0 live · 0 queued · 0 ended\nNo run to show."


def test_a_thousand_runs_are_cut_with_their_number() -> None:
    many = [running()] * 1_000
    html = runs_table_html(many)
    assert "1000 live" in html
    assert "… and 940 more runs" in Page(html).text
    assert runs_table_text(many).endswith("… and 940 more runs")
    assert len(html.encode()) < 64_000


def test_refusals_do_not_hide_the_answer() -> None:
    assert "Done." in runs_table_text([refused(("bash", "no"))])


def test_agents_are_listed_with_where_they_came_from_and_what_they_may_use() -> None:
    text = Page(agents_table_html(CATALOG)).text
    assert "2 agents · 1 can't be used" in text
    assert "scout (also look) builtin scout.md inherit read, list, find, grep Looks." in text
    assert "mute user openai:gpt-5 high none No tools." in text


def test_problems_and_shadowed_agents_follow_the_table() -> None:
    for text in (Page(agents_table_html(CATALOG)).text, " ".join(agents_table_text(CATALOG).split())):
        at = text.index("Can't be used")
        assert text.index("mute") < at < text.index(".subagents/bad.md: line 3: unknown key") < text.index("Shadowed")
        assert "project:scout shadows builtin:scout" in text


def test_without_agents_the_places_that_were_searched_are_named() -> None:
    empty = AgentCatalog(places=(SearchedPlace(where="~/.subagents/agents", source="user", state="absent"),))
    assert "~/.subagents/agents: absent" in agents_table_text(empty)
    assert "~/.subagents/agents: absent" in Page(agents_table_html(empty)).text


def test_an_agent_without_tools_whose_file_has_commands_run_is_shown_as_one() -> None:
    acceptance = {"verify": [{"command": "id"}]}
    agent = AgentDefinition(name="reader", description="d", source="project", tools=(), acceptance=acceptance)
    assert "none; has commands run at its end (verify)" in agents_table_text(AgentCatalog(agents=(agent,)))
