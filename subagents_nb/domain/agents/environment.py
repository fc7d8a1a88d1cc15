"""Which variables a runner gets, and which of those the tools it starts may see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from subagents_nb.domain.agents.models import PROVIDERS

RUN_MARK = "SUBAGENTS_NB_RUN"  # run id and instance token: names every process a run started
NO_RUN = "none"  # in its place: a process that is of no run, although one may have started it

# Variables of the kernel and of debuggers, and those that would slow or change a fresh interpreter.
_KERNEL = re.compile(
    r"JPY_|JUPYTER_|IPY|MPLBACKEND\Z|PYTHONSTARTUP\Z|PYTHONINSPECT\Z|PYTHONBREAKPOINT\Z|PYTHONDONTWRITEBYTECODE\Z"
    r"|PYTHONUNBUFFERED\Z|PYTHONHASHSEED\Z|PYDEVD|DEBUGPY|COVERAGE|COV_CORE|PYTEST_|PAGER\Z|GIT_PAGER\Z|CLICOLOR|"
    r"FORCE_COLOR\Z|TERM\Z|COLUMNS\Z|LINES\Z"
)
# What leads git to another repository or configuration: those of `git rev-parse --local-env-vars`, and what like them
# is about one place. They go as a set, whoever is named: git refuses to work where one of a set is missing.
_GIT_ROUTING = re.compile(
    r"GIT_(?:CONFIG(?:_\w+)?|DIR|WORK_TREE|IMPLICIT_WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|QUARANTINE_PATH|"
    r"ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR|NAMESPACE|PREFIX|INTERNAL_SUPER_PREFIX|GRAFT_FILE|SHALLOW_FILE|"
    r"NO_REPLACE_OBJECTS|REPLACE_REF_BASE|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM|ATTR_SOURCE)\Z"
)
# An agent's socket counts: with it a key is used that can't be read.
_SECRET = re.compile(
    r"(?:^|_)(?:API_?KEY|KEYS?|TOKENS?|SECRETS?|PASSPHRASE|PASSCODE|CREDENTIALS?|CREDS?|AUTH|COOKIES?|BEARER|PAT|DSN|"
    r"JWTS?|T?OTP|MNEMONIC|WEBHOOK|SAS_?KEY|CONN(?:ECTION)?_?STR(?:ING)?S?)(?:_|\Z)"
    r"|(?:API|ACCESS|ACCOUNT|SECRET|PRIVATE|SHARED|SIGNING|ENCRYPTION)KEY|CONNECTIONSTRING|PASSWORD|PASSWD"
    r"|_(?:PWD|PW|SAS|PRIVATE)\Z|(?:TOKEN|SECRET|JWT)\Z|\A(?:BW|OP)_SESSION"
    r"|(?<!COM)(?<!BY)(?<!ASK)(?<!OVER)(?<!UNDER)(?<!TRES)PASS(?:_|\Z)",
    re.IGNORECASE,
)
_HARMLESS = re.compile(r"PASSWORD_STORE_\w+\Z")  # where `pass` keeps its files, which are encrypted
# A user and a password in front of a host, a password among the settings of a connection, a signed address, a key.
_CARRIES = re.compile(
    r"://[^\s/:@]{0,256}:[^\s/@]{1,1024}@|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"
    r"|(?:\A|[;?&\s])(?:password|passwd|pwd|accountkey|sharedaccesskey|sharedaccesssignature|sig|access_token)=[^\s;&]",
    re.IGNORECASE,
)
_PROVIDER_KEYS = frozenset(name for provider in PROVIDERS for name in provider.key_env)
_SERVERS = frozenset(provider.base_url_env for provider in PROVIDERS if provider.base_url_env)
_PROVIDER_PREFIXES = ("ANTHROPIC_", "OPENAI_", "GEMINI_", "GOOGLE_API", "OPENROUTER_", "AWS_SECRET", "AWS_SESSION")


def runner_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the user's variables less those of the kernel, debuggers and git's routing."""
    kept = {name: value for name, value in environ.items() if not (_KERNEL.match(name) or _GIT_ROUTING.match(name))}
    kept["PYDANTIC_AI_NO_BANNER"] = "1"
    return kept


def carries_secret(value: str) -> bool:
    """Say whether a password or a private key stands in a value, whatever its variable is called."""
    return _CARRIES.search(value) is not None


def is_secret(name: str, value: str = "") -> bool:
    """Say whether a variable looks like it holds a key, token or password: by its name, or by what stands in it."""
    if name in _PROVIDER_KEYS or name.startswith(_PROVIDER_PREFIXES) or carries_secret(value):
        return True
    return _SECRET.search(name) is not None and not _HARMLESS.match(name)


def tool_environ(environ: Mapping[str, str], *, allowed: Iterable[str] = ()) -> dict[str, str]:
    """Return what the processes of tools may see: nothing that looks secret, unless named, and no routing of git."""
    named = frozenset(allowed)
    return {
        name: value
        for name, value in environ.items()
        if not _GIT_ROUTING.match(name) and (name in named or not is_secret(name, value))
    }


def comparable(name: str, value: str) -> bool:
    """Say whether a hash of a variable may be kept: it holds no secret. One that names a server may hold a password."""
    return not (carries_secret(value) if name in _SERVERS else is_secret(name, value))


def comparable_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a run launched now would find of variables that may be compared."""
    return {name: value for name, value in runner_environ(environ).items() if comparable(name, value)}


def absolute_entries(path: str) -> str:
    """Return a search path without the places that mean the working directory: empty and relative ones."""
    return ":".join(part for part in path.split(":") if part[:1] == "/")


def exec_environ(environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables that a fresh interpreter may be started with, and those to be told it by a safer way.

    What a process is started with can be read from outside, so no secret is in it. Of the places where Python looks for
    modules those are left out that mean the working directory, where an agent writes: an empty one, and relative ones.
    """
    visible = tool_environ(environ)
    if kept := absolute_entries(visible.pop("PYTHONPATH", "")):
        visible["PYTHONPATH"] = kept
    return visible, {name: value for name, value in environ.items() if visible.get(name) != value}
