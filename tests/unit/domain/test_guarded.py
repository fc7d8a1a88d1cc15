"""Which files no agent reads or writes: one list for tools, reads, outputs, artifacts and accounts."""

from __future__ import annotations

import fnmatch

import pytest

from subagents_nb.domain.agents.guarded import NEVER_READ, NEVER_WRITTEN, below, is_protected, is_secret

SECRETS = (
    ".env", "prod.env", ".env.local", "id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "a.pem",
    "server.key", "server.p12", "server.pfx", "vault.kdbx", ".pgpass", ".netrc", ".htpasswd", "credentials.json",
    ".docker/config.json", ".kube/config", ".config/gcloud/application_default_credentials.json",
    ".config/gh/hosts.yml", ".huggingface/token", ".cache/huggingface/token", ".gnupg/private-keys-v1.d/x",
    ".aws/credentials", ".azure/msal_token_cache.json", ".npmrc", ".pypirc", ".git-credentials", ".git/config",
    ".cargo/credentials.toml", ".terraform.d/credentials.tfrc.json", "terraform.tfstate",
    ".config/rclone/rclone.conf", "my-service-account-7f.json", "secrets.yaml", ".ssh/config",
    ".local/share/jupyter/runtime/kernel-1.json", ".bash_history", ".env~", ".env-prod", ".env_local",
    ".codex/auth.json", ".gemini/oauth_creds.json", ".local/share/opencode/auth.json",
    ".config/github-copilot/apps.json", ".local/share/jupyter/notebook_secret",
)  # fmt: skip
USUAL = (
    "README.md", "id_map.csv", "environment.yml", "keys.py", "src/credentials.py", "model.pth", "token.py",
    "data/a.json", ".github/workflows/ci.yml", ".gitignore", ".docker/Dockerfile", "notes.environment",
    "AGENTS.md", "pem.txt", ".profiler/x",
)  # fmt: skip
DECIDING = (
    ".git/hooks/pre-commit", ".claude/agents/delegate.md", ".agents/a.md", ".agents", ".pi/agents/a.md",
    ".claude/settings.json", ".subagents/settings.toml", ".ipython/profile_default/startup/00-x.py",
    ".jupyter/jupyter_server_config.py", ".bashrc", ".profile", ".bash_profile", ".zshrc", ".zshenv",
    ".config/fish/config.fish", ".config/autostart/x.desktop", ".gitconfig", ".local/bin/git",
    ".local/share/jupyter/kernels/python3/kernel.json", "jupyter_notebook_config.py", "ipython_config.py",
    ".venv/lib/python3.12/site-packages/x.pth", "sitecustomize.py", ".vimrc",
    ".venv/bin/activate", ".venv/bin/pip", "env/pyvenv.cfg", ".vscode/tasks.json", ".cargo/config.toml", ".gdbinit",
    ".tmux.conf", ".nvm/nvm.sh", ".pyenv/shims/python", ".mcp.json", ".docker/cli-plugins/docker-x",
)  # fmt: skip


def as_the_harness_matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(path, p) or fnmatch.fnmatchcase(path, p.removeprefix("**/")) for p in patterns)


@pytest.mark.parametrize("deep", ["", "a/b/"])
@pytest.mark.parametrize("name", SECRETS)
def test_what_holds_a_key_is_neither_read_nor_written_in_any_case_of_letters(name: str, deep: str) -> None:
    for path in (deep + name, deep + name.upper()):
        assert is_secret(path) and is_protected(path)
        assert as_the_harness_matches(path, NEVER_READ) and as_the_harness_matches(path, NEVER_WRITTEN)


@pytest.mark.parametrize("deep", ["", "a/b/"])
@pytest.mark.parametrize("name", DECIDING)
def test_what_later_runs_and_programs_begin_with_is_read_and_never_written(name: str, deep: str) -> None:
    assert is_protected(deep + name) and as_the_harness_matches(deep + name, NEVER_WRITTEN)
    assert is_protected((deep + name).upper())


@pytest.mark.parametrize("deep", ["", "a/b/"])
@pytest.mark.parametrize("name", USUAL)
def test_usual_files_are_open(name: str, deep: str) -> None:
    assert not is_secret(deep + name) and not as_the_harness_matches(deep + name, NEVER_READ)
    assert not is_protected(deep + name) and not as_the_harness_matches(deep + name, NEVER_WRITTEN)


def test_a_folder_is_fenced_as_it_is_written() -> None:
    assert as_the_harness_matches("a[1]/b*c", below("a[1]/b*c")) and as_the_harness_matches(
        "a[1]/b*c/x", below("a[1]/b*c")
    )
    assert not as_the_harness_matches("a1/bxc/x", below("a[1]/b*c"))
