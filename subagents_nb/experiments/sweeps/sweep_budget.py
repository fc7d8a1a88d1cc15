"""What the runs of one sweep may use together, whichever process launched them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable

from subagents_nb.domain.plans.budgets import SharedBudget, UsageBudget
from subagents_nb.domain.values.usage import Usage
from subagents_nb.experiments.sweeps.member_index import Member
from subagents_nb.store import StoreHome
from subagents_nb.store.tree.tree_usage import of_pool, used_in


class SweepBudget:
    """The budget of a sweep: runs launched under it write what they use into one pool, and hold each other to it.

    Failed ones count, and those that took their place: what was paid is paid. Of runs that were launched without a
    budget, `usage_of` says what they used.
    """

    def __init__(self, home: StoreHome, budget: UsageBudget, usage_of: Callable[[str], Usage]) -> None:
        self._home = home
        self._budget = budget
        self._usage_of = usage_of
        self._pool = ""
        self._elsewhere: list[str] = []  # runs that count and write into no pool of ours
        self._over: dict[str, Usage] = {}  # by id: what no longer grows

    def count(self, runs: Iterable[Member]) -> None:
        """Take what there is: the pool of the newest of these runs, a new one if there is none."""
        members = sorted(runs)
        pools = [one.pool for one in members if one.pool.isalnum()]
        self._pool = pools[-1] if pools else self._pool or secrets.token_hex(16)
        self._elsewhere = [one.run_id for one in members if one.pool != self._pool]

    def share(self, first_live: str | None) -> SharedBudget:
        """Return what a run that is launched now holds with the others, of which all before `first_live` are over."""
        used = self._used(first_live or "s")  # which comes after all ids
        over = {run_id: usage for run_id, usage in used.items() if first_live is None or run_id < first_live}
        since = first_live or (max(over, default="") and f"{max(over)}~")
        plain = SharedBudget(pool=self._pool, budget=self._budget, since=since)
        return plain.model_copy(update={"before": plain.used([*over.values(), *map(self._usage_of, self._elsewhere)])})

    def is_used_up(self, first_live: str | None) -> bool:
        """Say whether nothing is left of it."""
        plain = SharedBudget(pool=self._pool, budget=self._budget)
        used = plain.used([*self._used(first_live or "s").values(), *map(self._usage_of, self._elsewhere)])
        return plain.over(used) is not None

    def _used(self, first_live: str) -> dict[str, Usage]:
        """Return what each run of the pool used; the files of those that are over are read once."""
        last = max(self._over, default="")
        later = used_in(of_pool(self._home, self._pool), since=last)
        self._over |= {run_id: usage for run_id, usage in later.items() if run_id < first_live}
        return {**self._over, **later}
