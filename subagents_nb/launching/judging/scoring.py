"""Judge runs. Scores are kept with the run; judging a stored run asks no model.

A scorer is a function that takes the Run and returns a number, true or false, or a mapping of names to these. One that
was attached at the launch is called in this process when somebody asks what the run came to: `await`, `wait`,
`result`, `scores`, a comparison. Where the kernel is gone before that, `score(runs, fn)` does the same later.

A score is never stale: a scorer that was attached judges anew each time that its launch is asked for again, and what
comes out the same is not written twice. Only a dear one (`standing`) is not called on a run that it has judged, in a
fresh kernel either, while it and what it reads are the same; what of that can't be checked is kept with the score.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

from subagents_nb.domain.plans.experiments import Score, judges_usage, latest, split_number
from subagents_nb.domain.runs.snapshot import Snapshot
from subagents_nb.domain.runs.states import RunState
from subagents_nb.domain.values.words import one_line
from subagents_nb.errors import RequestError
from subagents_nb.launching.controlling.within_run import refuse_strangers
from subagents_nb.launching.judging.judge_costs import USAGE, counted, finished, usage_in
from subagents_nb.launching.judging.scorer_identity import OURS
from subagents_nb.launching.judging.standing import Signing, given_by, is_by, last_of, stands
from subagents_nb.store import StoreHome
from subagents_nb.store.clock import utc_now
from subagents_nb.store.runs.score_files import read_scores, write_score

Scorer: TypeAlias = "Callable[[Any], Any]"

JUDGED = (RunState.COMPLETE, RunState.PARTIAL)  # the others have nothing to show
_MAX_NAME = 200
_MAX_COMMENT = 10_000
_waiting: dict[str, list[Scorer]] = {}  # by run: what to call when it has ended
_lock = threading.Lock()
_LAMBDA = "<lambda>"  # the name of many: what one of them gave says nothing of another


class Judged(NamedTuple):
    """What a scorer gives that says why, too."""

    value: Any
    comment: str = ""


class Scores(Mapping[str, float]):
    """The latest scores of a run by name: `run.scores["accuracy"]`. `all` has those of single cases too."""

    def __init__(self, scores: Sequence[Score]) -> None:
        self.all = tuple(sorted(latest(scores).values(), key=lambda s: (s.name, s.case or "", s.at)))
        self.usage = judges_usage(scores)  # tokens and money of all who judged it
        self._whole = {score.name: score.number for score in self.all if score.case is None}
        self._cases: dict[str, dict[str, float]] = {}
        for score in self.all:
            if score.case is not None:
                self._cases.setdefault(score.name, {})[score.case] = score.number

    def __getitem__(self, name: str) -> float:
        """Return a score. Of one that was given for single cases only, the mean over them."""
        if name in self._whole:
            return self._whole[name]
        values = self._cases[name].values()
        return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else sum(values) / len(values)

    def __iter__(self) -> Any:
        return iter(dict.fromkeys([*self._whole, *self._cases]))

    def __len__(self) -> int:
        return len(self._whole.keys() | self._cases.keys())

    def cases(self, name: str) -> dict[str, float]:
        """Return the scores of single cases under this name."""
        return dict(self._cases.get(name, {}))

    def __repr__(self) -> str:
        shown = ", ".join(f"{one_line(name, 60)} {value:.6g}" for name, value in list(self.items())[:20])
        return f"<scores: {shown}>" if shown else "<no scores>"


def keep_score(
    home: StoreHome,
    run_id: str,
    name: str,
    value: Any,
    *,
    case: str | None = None,
    step: int | None = None,
    comment: str = "",
    by: str = "",
    **call: Any,
) -> Score:
    """Keep one score of a run and return it.

    Raises:
        RequestError: name, case or value are none.
        StoreError: it can't be written.
    """
    refuse_strangers(home, run_id)
    for what, text in (("name", name), ("case", case)):
        if text is not None and (not isinstance(text, str) or not text.strip() or len(text) > _MAX_NAME):
            raise RequestError(f"A score's {what} is a text of 1 to {_MAX_NAME} characters, not {_short_repr(text)}.")
    if step is not None and (isinstance(step, bool) or not isinstance(step, int)):
        raise RequestError(f"A score's step is a number, not {_short_repr(step)}.")
    number, nonfinite = split_number(as_number(value, name))
    score = Score(
        run_id=run_id,
        score_id=f"{time.time_ns():020d}-{secrets.token_hex(4)}",
        name=_without_surrogates(name),
        value=number,
        nonfinite=nonfinite,
        case=None if case is None else _without_surrogates(case),
        step=step,
        at=utc_now(),
        by=one_line(by, _MAX_NAME),
        comment=_without_surrogates(str(comment)[:_MAX_COMMENT]),
        **call,  # what is known of the call that it comes from
    )
    write_score(home.run(run_id), score)
    return score


def scores_of(home: StoreHome, run_id: str) -> Scores:
    """Return the scores of a run."""
    return Scores(read_scores(home, run_id))


def as_number(value: Any, name: str) -> float:
    """Return what a scorer gave as a number: true is 1, false 0, NaN and the infinities stay what they are.

    Raises:
        RequestError: it is no number.
    """
    if hasattr(value, "item") and not isinstance(value, Real) and getattr(value, "shape", None) == ():
        value = value.item()  # a single value of numpy or torch
    if isinstance(value, Real | Decimal):
        try:
            return float(value)
        except (OverflowError, ValueError):
            pass
    raise RequestError(
        f"The score {one_line(str(name), 60)!r} is a number, or true or false, not {_short_repr(value)}."
    )


def apply(scorer: Scorer, run: Any, *, known: Sequence[Score] | None = None) -> list[Score]:
    """Call a scorer on an ended run and keep what it gives. None: it has nothing to say about this run.

    With what is `known` of the run, a score that is the same as its last one is not written again.

    Raises:
        RequestError: it gave something else than numbers.
    """
    head, signing = _head(scorer), Signing(scorer)
    with counted(asks=signing.dear) as used:
        begin = time.perf_counter()
        given = finished(scorer(run))
    seconds = time.perf_counter() - begin
    hashed, unchecked = signing.end(seconds)
    by = f"{head} {hashed}{_about(scorer, run)}"
    by_name = dict(given) if isinstance(given, Mapping) else {} if given is None else {name_of(scorer): given}
    if USAGE in by_name and (said := usage_in(by_name[USAGE])):
        used = said
        del by_name[USAGE]
    judged = {name: one if isinstance(one, Judged) else Judged(one) for name, one in by_name.items()}
    checked = {name: as_number(one.value, name) for name, one in judged.items()}  # all or nothing
    call: dict[str, Any] = {"by": by, "seconds": round(seconds, 4), "unchecked": unchecked}
    last = {score.name: score for score in given_by(known or (), head)}
    kept = []
    for name, value in checked.items():
        old, comment = last.get(name), judged[name].comment
        if old is None or used or not _is_same(old, value, comment, by):
            old = keep_score(run.home, run.id, name, value, comment=comment, usage=used, **call)
            used = {}
        kept.append(old)
    if not checked and signing.dear and not any(score.name == name_of(scorer) for score in known or ()):
        # It was asked, and says nothing: not to be asked again.
        keep_score(run.home, run.id, name_of(scorer), math.nan, usage=used, withdrawn=True, **call)
    return kept


def _is_same(old: Score, value: float, comment: str, by: str) -> bool:
    number, word = split_number(value)
    said = _without_surrogates(str(comment)[:_MAX_COMMENT])
    return (old.value, old.nonfinite, old.comment, old.by, old.withdrawn) == (number, word, said, by, False)


def name_of(scorer: Scorer) -> str:
    """Return what a scorer is called: its own name, else its type's."""
    named = getattr(scorer, "__name__", None) or type(scorer).__name__
    return one_line(str(named), _MAX_NAME) or "score"


def _head(scorer: Scorer) -> str:
    """Return with what the names begin by which its scores are known; a hash follows."""
    return one_line(name_of(scorer), _MAX_NAME - 30)


def _about(scorer: Scorer, run: Any) -> str:
    """Return what its scores are known by besides: the case that it sees, with its right answer."""
    case = getattr(scorer._run if isinstance(scorer, _Bound) else run, "case", None)
    return "" if case is None else f" {case.sha256[:8]}"


class _Bound:
    """A scorer of one run, which sees the handle that it was bound to: its output is in its type, whoever asks."""

    def __init__(self, scorer: Scorer, run: Any) -> None:
        setattr(self, OURS, scorer)
        self._scorer = scorer
        self._run = run
        self.__name__ = name_of(scorer)

    def __call__(self, _run: Any) -> Any:
        return self._scorer(self._run)


def judge_later(run: Any, scorers: Sequence[Scorer]) -> None:
    """Have scorers called when somebody asks, in this process, what the run came to; they see it as this handle does.

    They take the place of those of the same names that wait: a cell that is run again has each called once.
    """
    if not scorers:
        return
    names = {name_of(scorer) for scorer in scorers}
    with _lock:
        kept = [one for one in _waiting.get(run.id, []) if name_of(one) not in names]
        _waiting[run.id] = [*kept, *(_Bound(scorer, run) for scorer in scorers)]


def waits_for(run_id: str) -> bool:
    """Say whether a scorer of this process waits for the run's end."""
    return run_id in _waiting


def judge_now(run: Any, snapshot: Snapshot) -> None:
    """Call what waits for the run's end, each once, if that has come; not dear ones whose judgement still stands.

    What ended without a result is not judged at all. A scorer that fails warns, and neither run nor cell fail by it.
    """
    if not waits_for(run.id) or not snapshot.ended or snapshot.state is RunState.PAUSED:
        return
    with _lock:
        scorers = _waiting.pop(run.id, [])
    if snapshot.state not in JUDGED:
        return
    known = read_scores(run.home, run.id)
    given: set[str] = set()
    heads: set[str] = set()
    for scorer in scorers:
        head = _head(scorer)
        last = last_of(known, head)
        if stands(scorer, last, head=head, about=_about(scorer, run)):
            given |= {score.name for score in known if last is not None and score.by == last.by}
            continue
        try:
            given |= {score.name for score in apply(scorer, run, known=known)}
            heads.add(head)
        except Exception as error:  # noqa: BLE001 - somebody else's function
            heads.discard(head)
            text = f"The scorer {name_of(scorer)} could not judge run {run.id}: {type(error).__name__}: {error}"
            warnings.warn(f"{one_line(text, 400)}. Mend it, then score([run], {name_of(scorer)}).", stacklevel=3)
    _withdraw(run, known, heads - {_LAMBDA}, given)


def _withdraw(run: Any, known: Sequence[Score], heads: set[str], given: set[str]) -> None:
    """Take back what these scorers gave once and give no more, unless somebody else has judged it since."""
    for (name, case), score in latest(known).items():
        if case is None and name not in given and any(is_by(score, head) for head in heads):
            keep_score(run.home, run.id, name, math.nan, by=score.by, withdrawn=True)


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _short_repr(value: Any) -> str:
    return one_line(f"{type(value).__name__} {value!r}", 80)
