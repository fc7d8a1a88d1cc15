"""Policies and calls as hypothesis draws them."""

from __future__ import annotations

import os

from hypothesis import strategies as st

from subagents_nb.domain.agents.agent import THINKING_LEVELS
from subagents_nb.domain.policy.policy import Ceiling, Policy
from subagents_nb.domain.policy.shell_words import Command, ShellLine
from subagents_nb.domain.policy.tool_call import CallPath, ToolCall

RULES = (
    "read", "read(src/**)", "read(./a.py)", "read(.env)", "write", "edit(src/*.py)", "grep(docs/**)", "bash",
    "bash(git log:*)", "bash(git push:*)", "bash(ls)", "python", "mcp__files", "mcp:files/read_text", "skill(pdf)",
    "delegate(scout)", "memory", "*", "read(//etc/**)", "read(~/x/**)", "Bash(git status)", "ask",
)  # fmt: skip
NAMES = ("read", "list", "grep", "write", "edit", "bash", "python", "mcp__files", "mcp__other", "skill", "delegate")
rules = st.lists(st.sampled_from(RULES), max_size=3).map(tuple)
ceilings = st.builds(
    Ceiling,
    origin=st.sampled_from(("managed", "me", "project", "launch")),
    tools=st.none() | st.lists(st.sampled_from(NAMES), max_size=4).map(tuple),
    agents=st.none() | st.lists(st.sampled_from(("scout", "worker")), max_size=2).map(tuple),
    models=st.none() | st.lists(st.sampled_from(("openai:*", "local:*", "*mini")), max_size=2).map(tuple),
    max_thinking=st.none() | st.sampled_from(THINKING_LEVELS),
    deny=rules,
    ask=rules,
    allow=rules,
    max_depth=st.none() | st.integers(0, 3),
)
policies = st.lists(ceilings, max_size=3).map(lambda found: Policy.of(*found))
paths = st.sampled_from(
    (
        CallPath("src/a.py", "src/a.py", "/w/src/a.py"),
        CallPath("./A.PY", "a.py", "/w/a.py", also=("A.PY",)),
        CallPath("link", None, "/etc/passwd", also=("link",)),
        CallPath(".env", "x/.env", "/home/me/x/.env", home="~/x/.env"),
        CallPath("out", None, "/store/files/0/out", given=True),
    )
)
commands = st.lists(
    st.sampled_from(
        (Command(("git", "log")), Command(("git", "push")), Command(("ls",)), Command(("ls", "*"), frozenset((1,))))
    ),
    max_size=3,
)
calls = st.one_of(
    st.builds(ToolCall, st.sampled_from(("read", "grep", "write", "edit")), path=paths, below=st.booleans()),
    st.builds(lambda found: ToolCall("bash", line=ShellLine("x", tuple(found))), commands),
    st.just(ToolCall("bash", line=ShellLine("x", unproved="a variable"))),
    st.builds(ToolCall, st.sampled_from(("python", "ask", "mcp__files__read_text", "memory", "?read", "other"))),
    st.builds(ToolCall, st.sampled_from(("skill", "delegate")), name=st.sampled_from(("pdf", "scout"))),
)
CASES = int(os.environ.get("POLICY_CASES", "60"))  # `make soak` shows it 10,000
STRICT = ("allow", "ask", "deny")
