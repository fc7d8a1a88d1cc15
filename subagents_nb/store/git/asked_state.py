"""What git says of a workspace beyond its last commit, in one hash: what differs from it, and where branches are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from subagents_nb.domain.values.base import sha256_text
from subagents_nb.store.files.fingerprints import Unsettled
from subagents_nb.store.git.git import Git, GitProblem, GitTooMuch

_WITHIN_S = 5.0
_MOST_BYTES = 32 * 1024 * 1024
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")
_NO_COMMIT = ("HEAD", "ambiguous argument")


def git_state(root: Path, without: Iterable[str] = ()) -> str:
    """Return the hash of the differences of files and index from the last commit, and of all branches and tags.

    The files `without` are kept by others. Where there is no repository, that is what it says.

    Raises:
        Unsettled: there is too much of it to be compared in good time.
    """
    git = Git(cwd=root, filters=False)
    paths = ("--", ".", *(f":(exclude,literal){path}" for path in without if not path.startswith("..")))
    said: list[str] = []
    for command in (
        ("diff", *_PLAIN, *paths),
        ("diff", "--cached", "--raw", "--no-abbrev", "--no-renames", *paths),
        ("for-each-ref", "--format=%(refname) %(objectname)"),
    ):
        try:
            answer = git(*command, within_s=_WITHIN_S, limit=_MOST_BYTES)
        except GitTooMuch as problem:
            raise Unsettled(f"what git says of the workspace is too much to compare ({problem})") from problem
        except GitProblem:
            answer = b"none"
        said.append(answer.decode("utf-8", "surrogateescape"))
    return sha256_text("\0".join(said).encode("utf-8", "surrogateescape").hex())
