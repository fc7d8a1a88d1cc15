"""Which paths an agent's file tools never touch. A fence for the model, not for a shell: that has the user's rights.

One list for all who read, search, keep or write files on behalf of an agent. Patterns are as the harness matches them:
`*` crosses slashes, a leading `**/` also matches at the root. They are given in every case of letters, since `.ENV` is
`.env` where the file system says so.
"""

from __future__ import annotations

import re
from functools import cache

_SECRETS: tuple[str, ...] = (
    # keys and key stores
    "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.keystore", "*.kdbx", "*.ovpn",
    "**/.ssh/*", "**/id_rsa*", "**/id_dsa*", "**/id_ecdsa*", "**/id_ed25519*", "**/.gnupg/*", "**/.password-store/*",
    "**/.local/share/keyrings/*",
    # by name, wherever they lie
    "*.env", "**/.env.*", "**/.env[_~-]*", "**/.envrc", "**/secrets*", "**/.netrc", "**/_netrc", "**/.pgpass",
    "**/.my.cnf",
    "**/.mylogin.cnf", "**/.htpasswd", "**/.pypirc", "**/.npmrc", "**/.git-credentials", "**/.git/config",
    "**/.renviron", "**/.vault-token", "**/.databrickscfg", "**/.s3cfg", "**/.boto", "**/.dockercfg", "**/kaggle.json",
    "**/credentials", "*credentials.json", "**/credentials.toml", "**/credentials.y*ml", "*credentials.db",
    "*service[-_]account*.json", "**/client_secret*.json",
    # of programs
    "**/.aws/*", "**/.azure/*", "**/.kube/*", "**/.docker/config.json", "**/.config/gcloud/*", "**/gh/hosts.yml",
    "**/glab-cli/*", "**/.huggingface/*", "**/huggingface/*token*", "**/.cargo/credentials*", "**/.config/git/*",
    "**/.codex/auth.json", "**/.gemini/*", "**/.pi/agent/auth.json", "**/opencode/auth.json", "**/github-copilot/*",
    "**/io.datasette.llm/keys.json", "**/.aider.conf.y*ml", "**/.oci/*", "**/.snowsql/*", "**/.snowflake/*",
    "**/.m2/settings.xml", "**/.gem/*", "**/rclone.conf", "**/.terraform.d/*", "**/.terraformrc", "*.tfstate",
    "*.tfstate.*", "**/.mozilla/*", "**/.config/*chrom*/*",
    # Connection files hold the key by which code is run in a kernel; what was typed in a shell holds passwords.
    "**/jupyter/runtime/*", "**/jupyter*cookie_secret", "**/jupyter/notebook_secret",
    "**/.*_history", "**/history.sqlite", "**/proc/*/environ",
)  # fmt: skip
# Agents, settings and scripts decide what later runs may do: no agent writes those, at any depth.
_DECIDING = (".git", ".subagents", ".agents", ".claude", ".pi")
# Programs of the person's begin with these: a shell, IPython, Jupyter, git, an editor, Python itself.
_STARTING_FOLDERS = (
    ".config", ".local", ".ipython", ".jupyter", ".vim", ".emacs.d", ".oh-my-zsh", "site-packages", ".venv", ".conda",
    ".pyenv", ".nvm", ".rbenv", ".cargo", ".gradle", ".julia", ".direnv", ".vscode", ".vscode-server",
    ".cursor", ".codex", ".gemini",
)  # fmt: skip
_STARTING: tuple[str, ...] = (
    "**/.*profile", "**/.*rc", "**/.*login", "**/.*logout", "**/.zshenv", "**/.bash_aliases", "**/.xsession*",
    "**/.pam_environment", "**/.gitconfig", "**/.emacs", "**/ipython*_config.*", "**/jupyter_*config.*",
    "**/sitecustomize.py", "**/usercustomize.py", "**/pyvenv.cfg", "**/.pythonrc.py",
    "**/.gdbinit", "**/.lldbinit", "**/.tmux.conf", "**/.mailcap", "**/.lesskey", "**/.mcp.json",
    "**/.docker/cli-plugins/*",
)  # fmt: skip
# Of these a program begins with whatever lies nearest: a repository within one, a folder of agents, an editor's.
_BELOW = frozenset((*_DECIDING, ".vscode", ".cursor", ".codex", ".gemini", ".direnv", ".envrc", ".mcp.json"))


def any_case(pattern: str) -> str:
    """Return the pattern for every case of its letters; what stands in its brackets is to hold none."""
    return "".join(f"[{char.lower()}{char.upper()}]" if char.isalpha() else char for char in pattern)


def below(folder: str) -> tuple[str, str]:
    """Return the patterns of one folder, relative to the workspace, and of all in it."""
    literal = any_case(re.sub(r"([*?[])", r"[\1]", folder))
    return literal, f"{literal}/*"


_WRITES = (
    *_SECRETS,
    *(f"**/{name}{rest}" for name in (*_DECIDING, *_STARTING_FOLDERS) for rest in ("", "/*")),
    *_STARTING,
)
NEVER_READ: tuple[str, ...] = tuple(map(any_case, _SECRETS))
NEVER_WRITTEN: tuple[str, ...] = tuple(map(any_case, _WRITES))


def is_secret(path: str) -> bool:
    """Say whether a path, relative to the workspace, is one that must not be read."""
    return _any_of(_SECRETS).search(path.lower()) is not None


def is_protected(path: str) -> bool:
    """Say whether a path, relative to the workspace, is one that must not be written. A secret is one too."""
    return _any_of(_WRITES).search(path.lower()) is not None


def decides_below(name: str) -> bool:
    """Say whether a file or folder of this name decides, at any depth, what runs or programs of the person's do."""
    return name.lower() in _BELOW


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Return one expression for all patterns: walks ask of every file."""
    anchored = "|".join(_expression(one.removeprefix("**/")) for one in patterns if one.startswith("**/"))
    loose = "|".join(_expression(one.removeprefix("*")) for one in patterns if not one.startswith("**/"))
    return re.compile(rf"(?:\A|/)(?:{anchored})\Z|(?:{loose})\Z", re.DOTALL)


def _expression(pattern: str) -> str:
    return "".join(
        {"*": ".*", "[": "[", "]": "]"}.get(char, char if char == "-" else re.escape(char)) for char in pattern
    )
