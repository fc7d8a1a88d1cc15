"""Small git repositories for tests to work in."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path


def git(*args: str, cwd: Path) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    end = subprocess.run(["git", *identity, *args], cwd=cwd, check=True, capture_output=True, text=True)
    return end.stdout.strip()


def commit_all(repo: Path, said: str = "more") -> str:
    git("add", "-A", cwd=repo)
    git("commit", "-q", "--allow-empty", "-m", said, cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo)


def begin_repository() -> Path:
    """Make the current directory a repository with a few files."""
    root = Path.cwd()
    git("init", "-q", "-b", "main", cwd=root)
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "gone.txt").write_text("to be deleted\n")
    (root / "old name.txt").write_text("".join(f"line {n}\n" for n in range(40)))
    (root / "tool.sh").write_text("#!/bin/sh\n")
    (root / "data.bin").write_bytes(bytes(range(256)))
    (root / ".gitignore").write_text("*.log\nnode_modules\n")
    (root / "sub").mkdir()
    (root / "sub" / "inner.txt").write_text("inner\n")
    commit_all(root, "begin")
    return root


def nothing_left(repo: Path) -> bool:
    """Say whether git knows of no tree but the first, of no branch but the first, and no folder is there."""
    trees = git("worktree", "list", "--porcelain", cwd=repo).count("worktree ")
    branches = git("for-each-ref", "refs/heads/subagents", cwd=repo)
    return trees == 1 and not branches and not repo.with_name(f"{repo.name}-worktrees").exists()


def hook_of(repo: Path, body: str) -> str:
    path = repo / "sub" / "setup"
    path.write_text("#!/usr/bin/env python3\nimport json, os, sys, time\n" + textwrap.dedent(body))
    path.chmod(0o755)
    commit_all(repo, "hook")
    return "sub/setup"
