"""What files say of policy: the administrator's, the person's and the project's, of which the last can only narrow."""

from __future__ import annotations

from pathlib import Path

import pytest

from subagents_nb.catalog.settings_files import SettingsProblem, load_settings
from subagents_nb.domain.agents.settings import Settings

USER, PROJECT = "~/.subagents/settings.toml", ".subagents/settings.toml"


@pytest.fixture
def load(tmp_path: Path):
    home, project, managed = tmp_path / "home", tmp_path / "p", tmp_path / "etc" / "policy.toml"
    places = {"user": home / USER[2:], "project": project / PROJECT, "managed": managed}
    for place in places.values():
        place.parent.mkdir(parents=True)

    def made(**texts: str) -> Settings:
        for key, text in texts.items():
            places[key].write_text(text)
        return load_settings(project, home=home, environ={}, managed=managed)

    return made


def test_every_source_is_a_ceiling_with_its_origin_in_their_order(load) -> None:
    found = load(
        managed='models = ["openai:*"]\ndeny = ["bash(git push:*)"]',
        user='[policy]\ntools = ["Read", "bash(git log:*)"]\nmax_thinking = "medium"\nspend = "$2"\nask_timeout = "5m"',
        project='[policy]\nask = ["read(secrets/**)"]\nmax_depth = 1',
    ).ceilings
    assert [one.origin.rpartition("/")[2] for one in found] == ["policy.toml", "settings.toml", "settings.toml"]
    assert (found[0].origin.startswith("/"), found[1].origin, found[2].origin) == (True, USER, PROJECT)
    assert (found[0].models, found[0].deny) == (("openai:*",), ("bash(git push:*)",))
    assert (found[1].tools, found[1].allow) == (("read", "bash"), ("Read", "bash(git log:*)"))
    assert (found[1].max_thinking, found[1].ask_timeout_s) == ("medium", 300) and found[1].max_usd == 2
    assert (found[2].ask, found[2].max_depth) == (("read(secrets/**)",), 1)


def test_without_any_there_is_none(load) -> None:
    assert load(user='default_model = "local:smollm2"').ceilings == ()


def test_a_project_that_would_widen_is_told(load) -> None:
    with pytest.raises(SettingsProblem) as caught:
        load(
            managed='models = ["openai:*"]',
            user='[policy]\ntools = ["read"]\nagents = ["scout"]\nmax_thinking = "low"\nmax_children = 2',
            project='[policy]\ntools = ["read", "bash"]\nagents = ["scout", "worker"]\nmodels = ["openai:gpt-5", "*"]\n'
            'max_thinking = "high"\nmax_children = 3',
        )
    assert caught.value.reasons == (
        "project settings can't widen: policy.tools adds bash",
        "project settings can't widen: policy.agents adds worker",
        "project settings can't widen: policy.models adds *",
        "project settings can't widen: policy.max_thinking adds high",
        "project settings can't widen: policy.max_children adds 3",
    )


def test_what_is_wrong_with_a_table_is_all_told(load) -> None:
    with pytest.raises(SettingsProblem) as caught:
        load(user='[policy]\ndeny = ["bash(git *"]\nallow = ["bahs"]', project="policy = 3", managed="tols = []")
    told = "\n".join(caught.value.reasons)
    end = "; it would guard nothing, so nothing is started"
    assert f"rule 'bash(git *' in {USER} has no closing bracket{end}" in told
    assert f"rule 'bahs' in {USER} names no tool with 'bahs' (did you mean bash?){end}" in told
    assert "`tols` is unknown" in told and f"{PROJECT}: `policy` must be a table" in told


def test_a_managed_file_that_can_not_be_read_keeps_every_launch_back(load, tmp_path: Path) -> None:
    load(managed="")
    for text in ("tools = [", "x" * 70_000):
        with pytest.raises(SettingsProblem):
            load(managed=text)
    (tmp_path / "etc" / "policy.toml").unlink()
    (tmp_path / "etc" / "policy.toml").mkdir()
    with pytest.raises(SettingsProblem, match=r"policy\.toml"):
        load()
