"""Simple commands of a shell line as plain words, and what in them goes beyond a rule that allows any words to follow.

The line is taken apart elsewhere, by a parser; here nothing knows the shell's grammar. A rule grants, it protects from
nothing: a program that is allowed does what it does. The table holds those that people take for readers and that run or
write something else when an option says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: its words without their quotes, and which of them the shell would still expand to files."""

    words: tuple[str, ...]
    expands: frozenset[int] = frozenset()

    @property
    def program(self) -> str:
        """Return its name, whatever folder it is called in."""
        return self.words[0].rpartition("/")[2] if self.words else ""

    @property
    def text(self) -> str:
        """Return it in one line, as people read it."""
        return " ".join(self.words)


@dataclass(frozen=True, slots=True)
class ShellLine:
    """A line taken apart: simple commands alone, or why it is not proved to be that."""

    text: str
    commands: tuple[Command, ...] = ()
    unproved: str = ""  # what in it is no simple command


# They run what their words say: a rule has to say the program too.
_WRAPPERS = frozenset(
    (
        "env", "nice", "nohup", "timeout", "time", "xargs", "watch", "sudo", "doas", "su", "exec", "eval", "command",
        "builtin", "source", ".", "setsid", "stdbuf", "ionice", "chroot", "unshare", "nsenter", "strace", "ltrace",
        "flock", "script", "parallel", "ssh", "busybox", "trap", "coproc", "caffeinate", "unbuffer",
    )
)  # fmt: skip
# Options by which readers run or write something else. Short ones may stand among others: -ro is -r -o.
_OPTIONS: dict[str, tuple[str, str]] = {
    # program: (letters of short options, long options and single words)
    "find": ("", "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from"),
    "fd": ("xX", "--exec --exec-batch"),
    "git": (
        "",
        "--output --ext-diff --textconv --upload-pack --receive-pack --exec --exec-path --config-env "
        "--open-files-in-pager --extcmd --config --template --no-index -O -x",
    ),
    "sort": ("oT", "--output --compress-program --files0-from --temporary-directory"),
    "tar": ("IF", "--checkpoint-action --to-command --use-compress-program --info-script --new-volume-script "
            "--rsh-command --rmt-command"),
    "rg": ("", "--pre --pre-glob --hostname-bin"),
    "ag": ("", "--pager"),
    "ack": ("", "--pager --output --ackrc"),
    "bat": ("", "--pager --config-file"),
    "batcat": ("", "--pager --config-file"),
    "man": ("PHC", "--pager --html --config-file"),
    "less": ("oOk", "--log-file --LOG-FILE --lesskey-file --lesskey-src"),
    "tree": ("oR", "--output"),
    "file": ("mC", "--magic-file --compile"),
    "zip": ("T", "--unzip-command --test"),
    "rsync": ("e", "--rsh --rsync-path"),
    "gawk": ("fieEl", "--file --include --exec --load"),
    "awk": ("fieEl", "--file --include --exec --load"),
    "jq": ("fL", "--from-file"),
    "yq": ("i", "--inplace --from-file"),
    "date": ("s", "--set"),
    "diff3": ("", "--diff-program"),
    "iconv": ("o", "--output"),
    "nm": ("", "--plugin"),
    "objdump": ("", "--plugin"),
    "sdiff": ("o", "--output --diff-program"),
    "shuf": ("o", "--output"),
    "xmllint": ("", "-o --output"),
    "hostname": ("F", "--file"),
    "xxd": ("", "-r"),
}  # fmt: skip
# Short options of git's own commands; elsewhere the same letters say something else.
_GIT_LETTERS = {"grep": "O", "clone": "uc", "archive": "o", "format-patch": "o", "ls-remote": "c"}
_AWK = re.compile(r"system|getline|[|>@]|ENVIRON")
_SED_OPTIONS = frozenset(("-n", "-E", "-r", "-nE", "-En", "-nr", "-rn", "--quiet", "--silent", "--regexp-extended"))
_SED_PLACE = r"(?:\d+|\$|/[^/\\]*/)"
_SED_PART = r"(?:(?!\1)[^\\\n])*"
_SED = re.compile(rf"{_SED_PLACE}?(?:,{_SED_PLACE})?[pdq=]|s([/|,#]){_SED_PART}\1{_SED_PART}\1[gpI0-9]*")
_MOVES = frozenset(("cd", "pushd", "popd"))


def exceeds_rule(command: Command, allowed: int) -> bool:
    """Say whether a command does more than its first `allowed` words say, which a rule named."""
    program, rest = command.program, command.words[allowed:]
    if program in _WRAPPERS:
        return _wraps_more(command, allowed)
    if program == "uniq":  # the second file is written
        return sum(not word.startswith("-") for word in rest) > 1
    if program not in _OPTIONS and program != "sed":
        return False
    # What a wildcard stands for may begin with a dash, as a file may be called.
    if any(at >= allowed and not re.match(r"[\w./]", command.words[at]) for at in command.expands):
        return True
    if program == "sed":
        return _sed_writes(rest)
    if program == "git" and allowed < 2 and rest and rest[0].startswith("-") and rest[0] not in ("--version", "--help"):
        return True
    if program in ("awk", "gawk") and any(_AWK.search(word) for word in rest):
        return True
    if program == "less" and any(word.startswith("+") for word in rest):
        return True  # what it does first, in its own commands
    letters, words = _OPTIONS[program]
    if program == "git":
        letters = _GIT_LETTERS.get(next(iter(command.words[1:2]), ""), "")
    if program == "tar" and allowed == 1 and rest and set(rest[0]) & set(letters):
        return True  # its first word is options, with or without a dash
    return any(_is_option(word, letters, words.split(), single=program in ("find", "xxd")) for word in rest)


def _wraps_more(command: Command, allowed: int) -> bool:
    """Say whether a wrapper runs what no rule named, or has what it runs do more than that."""
    if allowed < 2:
        return len(command.words) > allowed
    names = [word.rpartition("/")[2] for word in command.words[:allowed]]
    inner = next((at for at, name in enumerate(names) if at and (name in _OPTIONS or name == "sed")), None)
    if inner is None:
        return False
    if command.program in ("xargs", "parallel"):
        return True  # it reads options that stand in no line
    expands = frozenset(at - inner for at in command.expands if at >= inner)
    return exceeds_rule(Command(command.words[inner:], expands), allowed - inner)


def together(commands: tuple[Command, ...]) -> str:
    """Return why commands that are allowed one by one are not allowed in one line; empty if they are.

    In a folder that an agent has filled, git reads a configuration that runs programs.
    """
    moved = False
    for command in commands:
        if moved and command.program == "git":
            return "it changes the folder before it calls git, whose configuration there may run anything"
        moved = moved or command.program in _MOVES
    return ""


def _is_option(word: str, letters: str, words: list[str], *, single: bool) -> bool:
    if not word.startswith("-") or word == "-":
        return False
    if single or not word.startswith("--"):
        if word in words or any(word.startswith(one) for one in words if len(one) == 2 or single):
            return True
        return not single and bool(set(word[1:]) & set(letters))
    name = word.partition("=")[0]
    # Long options may be cut short.
    return len(name) > 2 and any(one.startswith(name) for one in words if one.startswith("--"))


def _sed_writes(words: tuple[str, ...]) -> bool:
    if any(word.startswith("-") and word not in _SED_OPTIONS for word in words):
        return True
    script = next((word for word in words if not word.startswith("-")), "")
    return _SED.fullmatch(script) is None
