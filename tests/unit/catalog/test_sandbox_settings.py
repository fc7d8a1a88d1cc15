"""What settings say of the sandbox: the nearer file may put agents into it, and takes none out."""

from __future__ import annotations

from pathlib import Path

import pytest

from subagents_nb.catalog.settings_files import SettingsProblem, load_settings
from subagents_nb.domain.agents.settings import Settings


def load(tmp_path: Path, *, user: str = "", project: str = "", managed: str = "") -> Settings:
    home, work, rule = tmp_path / "home", tmp_path / "home" / "work", tmp_path / "policy.toml"
    for folder, text in ((home, user), (work, project)):
        (folder / ".subagents").mkdir(parents=True, exist_ok=True)
        (folder / ".subagents/settings.toml").write_text(text, encoding="utf-8")
    if managed:
        rule.write_text(managed, encoding="utf-8")
    return load_settings(work, home=home, environ={}, managed=rule)


@pytest.mark.parametrize("text", ['sandbox = "workspace"', '[policy]\nsandbox = "workspace"'])
def test_each_file_may_ask_for_it(tmp_path: Path, text: str) -> None:
    for who in ("user", "project"):
        (ceiling,) = load(tmp_path, **{who: text}).ceilings
        assert ceiling.sandbox == "workspace" and ceiling.origin.endswith(".subagents/settings.toml")
    (ceiling,) = load(tmp_path, managed='sandbox = "workspace"\nnetwork = false').ceilings
    assert (ceiling.sandbox, ceiling.network) == ("workspace", False)


def test_a_project_takes_nothing_back(tmp_path: Path) -> None:
    for project, said in (('sandbox = "none"', "sandbox is none"), ("network = true", "network is true")):
        with pytest.raises(SettingsProblem, match=f"project settings can't widen: {said}"):
            load(tmp_path, user='sandbox = "workspace"', project=project)
    assert load(tmp_path, project='sandbox = "none"').ceilings == ()
    assert load(tmp_path, user="network = true").network is True
    assert load(tmp_path, user="network = true", project="network = false").ceilings[0].network is False


def test_what_is_no_sandbox_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsProblem, match="`sandbox` must be"):
        load(tmp_path, user='sandbox = "jail"')
    with pytest.raises(SettingsProblem, match=r"`policy.network` must be"):
        load(tmp_path, user="[policy]\nnetwork = true")


@pytest.mark.parametrize("no", ["false", '"false"', '"no"', '"off"', '"False"'])
def test_no_network_is_forbidden_in_every_spelling_that_is_read_as_no(tmp_path: Path, no: str) -> None:
    for who in ("user", "project"):
        found = load(tmp_path, **{who: f"network = {no}"})
        assert found.network is False and [one.network for one in found.ceilings] == [False], who
    assert load(tmp_path, user=f"[agents.scout]\nnetwork = {no}").agents[0].fields == {"network": False}


@pytest.mark.parametrize("yes", ["true", '"true"', '"yes"', '"on"', '"True"'])
def test_a_project_lets_no_network_in_in_any_spelling(tmp_path: Path, yes: str) -> None:
    with pytest.raises(SettingsProblem, match="project settings can't widen: network is true"):
        load(tmp_path, project=f"network = {yes}")
    assert load(tmp_path, user=f"network = {yes}").network is True


@pytest.mark.parametrize("none", ["false", '"none"'])
def test_a_project_takes_no_sandbox_back_in_any_spelling(tmp_path: Path, none: str) -> None:
    with pytest.raises(SettingsProblem, match="project settings can't widen: sandbox is none"):
        load(tmp_path, user='sandbox = "workspace"', project=f"sandbox = {none}")


@pytest.mark.parametrize("said", ["0", "1", '""', '"Workspace"', '" workspace "', '"NONE"', "true", "[]"])
@pytest.mark.parametrize("table", ["", "[policy]\n", "[agents.scout]\n"])
def test_what_is_no_word_of_a_sandbox_is_a_fault_and_never_less(tmp_path: Path, table: str, said: str) -> None:
    with pytest.raises(SettingsProblem, match="sandbox` must be"):
        load(tmp_path, user=f"{table}sandbox = {said}")
