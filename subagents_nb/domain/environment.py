"""Which variables a runner gets, and which of those the tools it starts may see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from subagents_nb.domain.models import PROVIDERS

RUN_MARK = "SUBAGENTS_NB_RUN"  # run id and instance token: names every process a run started
NO_RUN = "none"  # in its place: a process that is of no run, although one may have started it

# Variables of the kernel, of debuggers, of git's routing, and those that would slow or change a fresh interpreter.
_KERNEL = re.compile(
    r"JPY_|JUPYTER_|IPY|MPLBACKEND\Z|PYTHONSTARTUP\Z|PYTHONINSPECT\Z|PYTHONBREAKPOINT\Z|PYTHONDONTWRITEBYTECODE\Z"
    r"|PYTHONUNBUFFERED\Z|PYTHONHASHSEED\Z|PYDEVD|DEBUGPY|COVERAGE|COV_CORE|PYTEST_|GIT_(DIR|WORK_TREE|INDEX_FILE|"
    r"OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE|COMMON_DIR|PREFIX)\Z|PAGER\Z|GIT_PAGER\Z|CLICOLOR|"
    r"FORCE_COLOR\Z|TERM\Z|COLUMNS\Z|LINES\Z"
)
_SECRET = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|KEYS|TOKEN|TOKENS|SECRET|SECRETS|PASSWD|PASS|PASSPHRASE|CREDENTIALS?|CREDS|AUTH|COOKIE|"
    r"BEARER|PAT|DSN)(?:_|\Z)|(?:API|ACCESS|SECRET|PRIVATE)KEY|PASSWORD|_PWD\Z|(?:TOKEN|SECRET)\Z",
    re.IGNORECASE,
)
_PROVIDER_KEYS = frozenset(name for provider in PROVIDERS for name in provider.key_env)
_PROVIDER_PREFIXES = ("ANTHROPIC_", "OPENAI_", "GEMINI_", "GOOGLE_API", "OPENROUTER_", "AWS_SECRET", "AWS_SESSION")


def runner_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the user's variables less those of the kernel, debuggers and git's routing."""
    kept = {name: value for name, value in environ.items() if not _KERNEL.match(name)}
    kept["PYDANTIC_AI_NO_BANNER"] = "1"
    return kept


def is_secret(name: str) -> bool:
    """Say whether a variable's name looks like it holds a key, token or password."""
    return name in _PROVIDER_KEYS or name.startswith(_PROVIDER_PREFIXES) or _SECRET.search(name) is not None


def tool_environ(environ: Mapping[str, str], *, allowed: Iterable[str] = ()) -> dict[str, str]:
    """Return what the processes of tools may see: no provider key and nothing that looks secret, unless named."""
    named = frozenset(allowed)
    return {name: value for name, value in environ.items() if name in named or not is_secret(name)}
