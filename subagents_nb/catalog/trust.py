"""What a project may decide: nothing that others may write, and nothing that acts before the person allowed it.

A yes for a folder and all below it is given by `%subagent_trust --folder`, or stands in the person's own settings:
`trusted_folders = ["~/work"]` in ~/.subagents/settings.toml.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tomllib
from functools import lru_cache
from pathlib import Path

from subagents_nb.errors import StoreError
from subagents_nb.store.files.opener import read_plain
from subagents_nb.store.trust_file import read_answers

MAX_SETTINGS_BYTES = 64 * 1024
_KEY = "trusted_folders"


def home_folder(home: Path | None = None) -> Path:
    """Return the person's home folder, links in its path followed."""
    return _resolved(home) if home is not None else _own_home(os.environ.get("HOME"))


@lru_cache(maxsize=16)
def _resolved(home: Path) -> Path:
    return home.resolve()  # two dozen times a launch, and nobody moves it meanwhile


@lru_cache(maxsize=16)
def _own_home(_named: str | None) -> Path:
    return Path.home().resolve()


def is_trusted(folder: Path, *, home: Path | None = None) -> bool:
    """Say whether the person trusts this folder, whatever a project in it brings."""
    return trusted_by(folder, home=home) is not None


def trusted_by(folder: Path, *, home: Path | None = None) -> tuple[Path, bool] | None:
    """Return the folder at or above this one that the person trusts, and whether that stands in their settings."""
    place, top = folder.resolve(), home_folder(home)
    for trusted in _trusted_folders(top):
        if place.is_relative_to(trusted):
            return trusted, True
    with contextlib.suppress(StoreError):
        for name, answer in read_answers(top).projects.items():
            if answer.folder and place.is_relative_to(name):
                return Path(name), False
    return None


def how_to_allow(shown: str) -> str:
    """Return the one line that lets a folder count although others may write there."""
    return f'to allow what this project brings, write in ~/.subagents/settings.toml: {_KEY} = ["{shown}"]'


def who_else_writes(about: os.stat_result) -> str | None:
    """Return who besides me and root may write a file or folder, in words; None if nobody may."""
    if os.name != "posix":
        return None
    if about.st_uid not in (0, os.getuid()):
        return f"it belongs to another user (uid {about.st_uid})"
    if about.st_mode & stat.S_IWOTH:
        return "everybody may write there"
    if about.st_mode & stat.S_IWGRP and not _is_my_own(about.st_gid):
        return f"a group may write there (gid {about.st_gid})"
    return None


def _is_my_own(gid: int) -> bool:
    """Say whether a group has nobody but me in it, as many systems make one for each user; root's is as good."""
    if gid == 0:
        return True
    import grp
    import pwd

    with contextlib.suppress(KeyError):
        me, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(gid)
        return group.gr_name == me and set(group.gr_mem) <= {me}
    return False


def _trusted_folders(home: Path) -> tuple[Path, ...]:
    path = home / ".subagents/settings.toml"
    try:
        about = path.stat()
    except OSError:
        return ()
    return _read(path, home, about.st_ino, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=16)
def _read(path: Path, home: Path, *_identity: int) -> tuple[Path, ...]:
    """Return the folders that a settings file names. What is wrong with the file is for `load_settings` to say."""
    try:
        table = tomllib.loads(read_plain(path, MAX_SETTINGS_BYTES).decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return ()
    named = table.get(_KEY)
    texts = [text for text in named if isinstance(text, str) and text] if isinstance(named, list) else []
    folders = (home / text[2:] if text.startswith("~/") else home if text == "~" else Path(text) for text in texts)
    return tuple(folder.resolve() for folder in folders if folder.is_absolute())
