from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from subagents_nb.catalog import SettingsProblem, load_settings
from subagents_nb.domain.agents.attention import AttentionSettings
from subagents_nb.domain.agents.settings import Endpoint, Settings
from subagents_nb.domain.plans.options import setting_keys
from subagents_nb.errors import RequestError

Load = Callable[..., Settings]

ENDPOINT = '[endpoints.lab]\nbase_url = "http://localhost:8000/v1/"\n'


@pytest.fixture
def load(project: Path, home: Path) -> Load:
    """Write the two files and load."""

    def run(
        user: str | None = None,
        project_text: str | None = None,
        environ: Mapping[str, str] | None = None,
        reserved: frozenset[str] = frozenset(),
    ) -> Settings:
        for base, text in ((home, user), (project, project_text)):
            if text is not None:
                (base / ".subagents").mkdir(exist_ok=True)
                (base / ".subagents/settings.toml").write_text(text)
        return load_settings(project, home=home, environ=environ or {}, reserved=reserved)

    return run


def faults(load: Load, *args: object, **kwargs: object) -> tuple[str, ...]:
    with pytest.raises(SettingsProblem) as error:
        load(*args, **kwargs)
    assert isinstance(error.value, RequestError)
    assert str(error.value) == "\n".join(error.value.reasons)
    return error.value.reasons


def test_without_files_the_defaults_hold(load: Load) -> None:
    assert load() == Settings()


def test_every_key_of_the_user_file_counts(load: Load) -> None:
    settings = load(
        'default_model = "lab:qwen"\ndefault_agent = "scout"\ndefault_thinking = "low"\ntimeout = "30m"\n'
        'max_requests = 7\ntool_env = ["MY_TOKEN"]\n' + ENDPOINT + 'key_env = "LAB_KEY"\n'
    )
    where = "~/.subagents/settings.toml"
    keys = ("default_model", "default_agent", "default_thinking", "timeout_s", "max_requests", "tool_env")
    assert settings == Settings(
        default_model="lab:qwen",
        default_agent="scout",
        default_thinking="low",
        timeout_s=1800,
        max_requests=7,
        tool_env=("MY_TOKEN",),
        endpoints={"lab": Endpoint(base_url="http://localhost:8000/v1", key_env="LAB_KEY")},
        origins=dict.fromkeys([*keys, "endpoints.lab"], where),
    )


def test_when_to_point_at_a_run_is_said_key_by_key_and_a_nearer_file_need_not_say_all(load: Load) -> None:
    user = '[attention]\nidle = "2m"\nlong_tool = "10m"\nfailing_edits = 5\nfailing_within = "1m"\n'
    settings = load(user, "[attention]\nlong_tool = 30\n")
    assert settings.patience == AttentionSettings(idle_s=120, tool_s=30, failing_edits=5, failing_window_s=60)


def test_the_project_stands_over_the_user_and_the_environment_over_both(load: Load) -> None:
    user = 'default_model = "u"\ndefault_thinking = "low"\ntimeout_s = 30\nmax_requests = 1\n'
    project = 'default_model = "p"\ndefault_thinking = "off"\ntimeout = 20\n'
    environ = {"SUBAGENTS_NB_MODEL": "e", "SUBAGENTS_NB_TIMEOUT": "90s", "SUBAGENTS_NB_THINKING": ""}
    settings = load(user, project, environ)
    assert (settings.default_model, settings.default_thinking) == ("e", "off")
    assert (settings.timeout_s, settings.max_requests) == (90, 1)
    assert settings.origins == {
        "default_model": "SUBAGENTS_NB_MODEL",
        "default_thinking": ".subagents/settings.toml",
        "timeout_s": "SUBAGENTS_NB_TIMEOUT",
        "max_requests": "~/.subagents/settings.toml",
    }


LIMITS = {  # field: what the person says, more than that, less
    "timeout": ("600", '"3h"', "60"),
    "tool_timeout": ("60", "90", "5"),
    "max_requests": ("10", "9999", "2"),
    "max_children": ("8", "1000", "1"),
    "max_parallel": ("2", "99", "1"),
    "group_concurrency": ("2", "99", "1"),
    "max_items": ("10", "10000", "3"),
    "usage_budget": ('"$2"', '"$200"', '"$0.5"'),
    "tool_budget": ("{hard = 10, soft = 5}", "9999", "3"),
}


@pytest.mark.parametrize("key", LIMITS)
def test_a_project_lowers_a_limit_that_the_person_said_and_never_raises_it(load: Load, key: str) -> None:
    own, more, less = LIMITS[key]
    field = f"{key}_s" if key in ("timeout", "tool_timeout") else key
    alone = load(f"{key} = {own}")
    asked = load(f"{key} = {own}", f"{key} = {more}")
    assert asked.origins[field] == "~/.subagents/settings.toml"
    assert getattr(asked, field) == getattr(alone, field)
    (told,) = asked.held_back
    assert told.startswith(f".subagents/settings.toml: {key} ") and "which ~/.subagents/settings.toml says" in told
    lower = load(f"{key} = {own}", f"{key} = {less}")
    assert lower.held_back == () and lower.origins[field] == ".subagents/settings.toml"
    assert getattr(lower, field) != getattr(alone, field)
    assert lower.raised == asked.raised == ()


def test_of_a_budget_each_part_is_the_lower_one_and_what_the_project_leaves_out_still_holds(load: Load) -> None:
    usage = load('usage_budget = "$2"', "usage_budget = {tokens = 5000, cost_usd = {hard = 9, soft = 1}}").usage_budget
    assert usage == {"tokens": {"hard": 5000}, "cost_usd": {"hard": 2, "soft": 1}}
    calls = load('tool_budget = {hard = 9, block = "bash"}', "tool_budget = {hard = 20, soft = 10, block = 'read'}")
    assert calls.tool_budget == {"hard": 9, "soft": 9, "block": ["bash", "read"]}
    assert calls.held_back and load('usage_budget = "$2"', "usage_budget = 5000").held_back == ()


def test_what_the_environment_says_is_the_persons_word_too(load: Load) -> None:
    settings = load("", "tool_timeout = 120", {"SUBAGENTS_NB_TOOL_TIMEOUT": "20s"})
    assert (settings.tool_timeout_s, settings.origins["tool_timeout_s"]) == (20, "SUBAGENTS_NB_TOOL_TIMEOUT")
    assert "tool_timeout 2 min is above 20 s, which SUBAGENTS_NB_TOOL_TIMEOUT says" in settings.held_back[0]


def test_where_the_person_says_nothing_a_project_above_the_defaults_is_told(load: Load) -> None:
    settings = load("", 'timeout = "3h"\nmax_requests = 3\nusage_budget = "$5"')
    assert settings.raised == ("timeout 3 h is above 30 min",) and settings.held_back == ()


def test_a_time_limit_of_tools_in_a_file_stands_over_the_one_in_the_environment(load: Load) -> None:
    variable = {"SUBAGENTS_NB_TOOL_TIMEOUT": "20s"}
    settings = load("tool_timeout = 10\n", environ=variable)
    assert (settings.tool_timeout_s, settings.origins["tool_timeout_s"]) == (10, "~/.subagents/settings.toml")
    settings = load("", "", variable)
    assert (settings.tool_timeout_s, settings.origins["tool_timeout_s"]) == (20, "SUBAGENTS_NB_TOOL_TIMEOUT")


def test_the_project_file_is_found_from_a_folder_below(project: Path, home: Path, load: Load) -> None:
    load(project_text="max_requests = 3")
    (project / "notebooks").mkdir()
    assert load_settings(project / "notebooks", home=home, environ={}).max_requests == 3


def test_the_users_file_is_no_project_file_in_the_home_folder(home: Path, load: Load) -> None:
    load(ENDPOINT)
    assert set(load_settings(home, home=home, environ={}).endpoints) == {"lab"}


@pytest.mark.parametrize(("key", "text"), [("endpoints", ENDPOINT), ("tool_env", 'tool_env = ["AWS_SECRET"]')])
def test_a_project_may_not_send_keys_elsewhere(load: Load, key: str, text: str) -> None:
    assert faults(load, project_text=text) == (
        f".subagents/settings.toml: `{key}` is for ~/.subagents/settings.toml only: a project must not decide about "
        "your keys, your commands and your other runs",
    )


U = "~/.subagents/settings.toml"


def test_a_key_that_is_like_none_is_answered_with_all_of_them(load: Load) -> None:
    (fault,) = faults(load, "zzz = 1")
    said = fault.removeprefix(f"{U}: `zzz` is unknown; the keys are ").split(", ")
    assert {"default_model", "endpoints", "reuse", "timeout", *setting_keys()} <= set(said)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("default-model = 'x'", f"{U}: `default-model` is unknown; did you mean default_model?"),
        ("endpoint = 1", f"{U}: `endpoint` is unknown; did you mean endpoints?"),
        ("model = 'x'", f"{U}: `model` is unknown; did you mean default_model?"),
        ("origins = {}", f"{U}: `origins` is unknown; did you mean endpoints?"),
        ("a = 1\nb = [\n", f"{U}: not TOML: Invalid value (at end of document)"),
        ("a = 1\nb = x\n", f"{U}: not TOML: Invalid value (at line 2, column 5)"),
        ("a = 1\na = 2\n", f"{U}: not TOML: Cannot overwrite a value (at line 2, column 6)"),
        ("default_model = 4", f"{U}: `default_model` must be text, not 4 (put it in quotes)"),
        ("default_model = ' '", f"{U}: `default_model` must say something, not ' '"),
        ("default_thinking = 'huge'", f"{U}: `default_thinking` must be off, minimal, low, medium, high, xhigh or "
         f"max, not 'huge'"),
        ("timeout = 'soon'", f"{U}: `timeout` must be seconds, or text such as 90s, 30m or 1h, not 'soon'"),
        ("timeout_s = nan", f"{U}: `timeout_s` must be above zero and at most 7 days, not nan"),
        ("timeout = 1\ntimeout_s = 1", f"{U}: `timeout` and `timeout_s` mean the same: keep one"),
        ("max_requests = true", f"{U}: `max_requests` must be a whole number above zero, not True"),
        ("attention = '2m'", f"{U}: `attention` must be a table: [attention] with idle = \"2m\", not '2m'"),
        ("[attention]\nidel = 3", f"{U}: `attention.idel` is unknown; did you mean idle?"),
        ("[attention]\nidle = 'x'", f"{U}: `attention.idle` must be seconds, or text such as 90s, 30m or 1h, not 'x'"),
        ("max_output = true", f"{U}: `max_output` must be a number, not True"),
        ("reuse = 'always'", f"{U}: `reuse` must be never, tracked or complete, not 'always'"),
        ("tool_env = 'X'", f"{U}: `tool_env` must be a list, not 'X'"),
        ("tool_env = ['A B']", f"{U}: `tool_env[0]` must be the name of a variable, not 'A B'"),
        ("endpoints = 1", f"{U}: `endpoints` must be a table: [endpoints.lab], not 1"),
        ("endpoints.lab = 1", f"{U}: `endpoints.lab` must be a table with base_url, not 1"),
        ("[endpoints.lab]", f"{U}: `endpoints.lab.base_url` is missing"),
        ("[endpoints.lab]\nbase_url='ftp://x'", f"{U}: `endpoints.lab.base_url` must be an address that starts with "
         f"http:// or https://, not 'ftp://x'"),
        (ENDPOINT + "keyenv = 'X'", f"{U}: `endpoints.lab.keyenv` is unknown; did you mean key_env?"),
        (ENDPOINT + "api = 'soap'", f"{U}: `endpoints.lab.api` must be chat or responses, not 'soap'"),
        (ENDPOINT.replace("lab", "Lab"), f"{U}: `endpoints.Lab` must be lower-case letters, digits, _ and -, a "
         f"letter first, not 'Lab'"),
        (ENDPOINT.replace("lab", "openai"), f"{U}: `endpoints.openai`: this is the name of a known provider; choose "
         f"another"),
    ],
)  # fmt: skip
def test_a_fault_names_the_file_and_the_key(load: Load, text: str, fault: str) -> None:
    assert faults(load, text, reserved=frozenset({"openai"})) == (fault,)


def test_a_bad_variable_is_named(load: Load) -> None:
    assert faults(load, environ={"SUBAGENTS_NB_TIMEOUT": "x", "SUBAGENTS_NB_THINKING": "x"}) == (
        "SUBAGENTS_NB_THINKING: its value must be off, minimal, low, medium, high, xhigh or max, not 'x'",
        "SUBAGENTS_NB_TIMEOUT: its value must be seconds, or text such as 90s, 30m or 1h, not 'x'",
    )


def test_all_faults_are_told_at_once(load: Load) -> None:
    assert len(faults(load, "a = 1\nmax_requests = 0", "tool_env = []\nb = 1", {"SUBAGENTS_NB_TIMEOUT": "0"})) == 5


def test_a_settings_file_that_cannot_be_read_is_a_fault(project: Path, load: Load) -> None:
    (project / ".subagents/settings.toml").mkdir(parents=True)
    assert faults(load) == (
        ".subagents/settings.toml: the file can't be read: .subagents/settings.toml is no plain file",
    )


def test_a_huge_or_binary_settings_file_is_a_fault(project: Path, load: Load) -> None:
    assert faults(load, "#" * (64 * 1024 + 1)) == (f"{U}: the file is larger than 64 KiB",)
    load("")
    (project / ".subagents").mkdir()
    (project / ".subagents/settings.toml").write_bytes(b"\xff")
    assert faults(load)[0].startswith(".subagents/settings.toml: not TOML: 'utf-8' codec can't decode")


@pytest.mark.parametrize("kind", ["pipe", "device", "link out"])
def test_a_projects_settings_are_a_plain_file_of_its_own_and_nothing_is_waited_for(
    project: Path, home: Path, load: Load, kind: str
) -> None:
    place = project / ".subagents/settings.toml"
    place.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(place)
    else:
        (project.parent / "theirs").write_text("timeout = 1")
        place.symlink_to("/dev/ptmx" if kind == "device" else project.parent / "theirs")
    (fault,) = faults(load)
    assert "is no plain file" in fault if kind == "pipe" else "leads out of its project" in fault


def test_the_persons_own_settings_may_be_a_link(load: Load, home: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").write_text("timeout = 7")
    (home / ".subagents").mkdir()
    (home / ".subagents/settings.toml").symlink_to(tmp_path / "dotfiles")
    assert load().timeout_s == 7


def test_trust_is_the_persons_to_give(load: Load) -> None:
    assert load('trusted_folders = ["~/work", "/srv/mine"]').trusted_folders == ("~/work", "/srv/mine")
    assert "`trusted_folders[0]` must be a whole path" in faults(load, 'trusted_folders = ["work"]')[0]
    assert "~/.subagents/settings.toml only" in faults(load, "", 'trusted_folders = ["/"]')[0]
