"""The warm supervisor: one single-threaded process that has imported the model stack and forks runners.

It listens on a private Unix socket, reaps its children and records how they ended, at once, with no kernel alive; runs
that wait for a place wait here. It has a second socket for those, KEY.queue, which answers while the model stack is
still being imported: what can't begin yet need not wait for that. It leaves after some idle time. Run as `python -m
subagents_nb.supervisor.host HOME KEY warm|cold`; a cold one imports no model stack and starts fresh interpreters.
"""

from __future__ import annotations

import gc
import os
import sys

from subagents_nb.supervisor.warm.hostlock import sign, take_lock

if __name__ == "__main__":
    # Collecting while importing costs a third of the time of a start.
    gc.disable()
    # Our starter starts nobody else while this process lives or the lock is held; from now on one of these is so.
    _lock = take_lock(os.path.join(sys.argv[1], "supervisor", f"{sys.argv[2]}.lock"))
    if _lock is None:
        os._exit(0)
    if os.fork():
        os._exit(0)  # our starter reaps this one at once and never has us for a child
    os.setsid()
    sign(_lock)

import contextlib
import errno
import functools
import importlib
import selectors
import signal
import socket
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subagents_nb.prctl import adopt_orphans, keep_memory_private
from subagents_nb.store.files.lock import hold
from subagents_nb.store.kept.collector import collect_daily
from subagents_nb.store.layout import StoreHome
from subagents_nb.supervisor.protocol import wire
from subagents_nb.supervisor.warm.adoption import Reattached
from subagents_nb.supervisor.warm.nested import answer_ask
from subagents_nb.supervisor.warm.process_table import ProcessTable, SpawnRequest
from subagents_nb.supervisor.warm.queue import Queue, QueuedRun
from subagents_nb.supervisor.warm.reconcile import reconcile

IDLE_VARIABLE = "SUBAGENTS_NB_SUPERVISOR_IDLE_S"
_IDLE_S = 1800.0
_TICK_S, _WATCH_TICK_S, _QUEUE_TICK_S = 5.0, 1.0, 0.1
_SLOW_PEER_S = 5.0
_ALARM_S = 0.02
_QUIET_S = 5.0
_BREATH_S = 0.1
_SHORT_OF = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_COLLECT_AFTER_S = 60.0
_COMPARE_S = 2.0
_MAKESHIFT_S = 5.0


@dataclass(slots=True)
class _Peer:
    connection: socket.socket
    since: float
    data: bytearray
    place: int | None = None


class Host:
    """The loop of the supervisor."""

    def __init__(self, home: StoreHome, key: str, *, forking: bool = True) -> None:
        self.home = home
        self.socket_path = home.supervisor / f"{key}.sock"
        self._queue_path = wire.queue_path(home.supervisor, key)
        self._process_table = ProcessTable(home, forking=forking)
        self._queue = Queue(home, self._process_table)
        self._adopted = Reattached(home)
        self._selector = selectors.DefaultSelector()
        self._peers: dict[int, _Peer] = {}
        self._paused: list[Any] = []  # listeners that rest, since no descriptor was left for a connection
        self._paused_until = 0.0
        self._idle_s = float(os.environ.get(IDLE_VARIABLE, _IDLE_S))
        self._last_used = time.monotonic()
        self._leaving = False
        self._warming = False
        self._makeshift = False
        self._further: Iterator[None] | None = None
        self._quiet_s = 0.0
        self._code, self._compared = wire.digest_of_code(), time.monotonic()

    def prepare(
        self,
        warm_up: Callable[[], None],
        further: Callable[[], Iterator[None]] = lambda: iter(()),
        *,
        quiet_s: float = _QUIET_S,
    ) -> None:
        """Carry out `warm_up`, and take runs into the queue meanwhile; they begin afterwards.

        Then `serve` carries out the pieces of `further`, when for `quiet_s` nobody has asked anything and no run ended.

        An alarm interrupts the imports fifty times a second to look at the socket and the queue: a thread would make
        forking unsafe, fork(2). If `warm_up` fails, runs begin in fresh interpreters, and this process leaves when it
        has nothing to do: those that wait here must not be lost for it.
        """
        self._listen(self._queue_path)
        self._warming = True
        busy, looked = False, 0.0

        def poll(*_: object) -> None:
            nonlocal busy, looked
            if busy:
                return
            busy = True
            try:
                self._poll(0)
                if time.monotonic() - looked >= _QUEUE_TICK_S:
                    looked = time.monotonic()
                    self._queue.look()
            except Exception as error:  # noqa: BLE001 - it would be raised in the middle of somebody's import
                print(f"a request was not heard: {error}", file=sys.stderr, flush=True)  # noqa: T201
            finally:
                busy = False

        signal.signal(signal.SIGALRM, poll)
        signal.setitimer(signal.ITIMER_REAL, _ALARM_S, _ALARM_S)
        try:
            warm_up()
            self._further, self._quiet_s, self._last_used = further(), quiet_s, time.monotonic()
        except Exception:  # noqa: BLE001 - imports and a rehearsal on a machine that may be busy or full: anything
            self._make_do()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            self._warming = False

    def _prepare_further(self) -> None:
        if self._further is None or time.monotonic() - self._last_used < self._quiet_s:
            return
        try:
            next(self._further)
        except StopIteration:
            self._further = None
        except Exception:  # noqa: BLE001 - as in `prepare`
            self._further = None
            self._make_do()
        gc.freeze()

    def _make_do(self) -> None:
        traceback.print_exc()
        self._process_table.fork_no_more()
        self._makeshift = True

    def serve(self) -> None:
        """Listen until there has been nothing to do for the idle time."""
        self._when_possible(self._heed_signals)
        self._when_possible(functools.partial(self._listen, self.socket_path))
        if not self._queue_path.exists():
            self._listen(self._queue_path)
        while not self._leaving:
            for handle in self._adopted.find():
                self._selector.register(handle, selectors.EVENT_READ, self._reattached_ended)
            self._poll(self._poll_timeout_s)
            self._process_table.force()
            self._adopted.force()
            self._adopted.settle()
            if self._process_table.reap():
                self._last_used = time.monotonic()
            self._queue.step()
            self._drop_slow_peers()
            self._prepare_further()
            self._heed_upgrade()
            busy = len(self._process_table) or len(self._queue) or len(self._adopted)
            if not busy and self._idle_s and time.monotonic() - self._last_used > _COLLECT_AFTER_S:
                collect_daily(self.home, keep_days=_keep_days, judge=functools.partial(reconcile, self.home))
            idle_s = _MAKESHIFT_S if self._makeshift else self._idle_s
            if not busy and (time.monotonic() - self._last_used > idle_s or not self.socket_path.exists()):
                break  # idle for long, or its store was deleted
        for path in (self.socket_path, self._queue_path):
            with contextlib.suppress(OSError):
                path.unlink()

    def _heed_upgrade(self) -> None:
        """See whether other code lies on disk: a copy of this process would import what does not fit it.

        From then on runs begin in fresh interpreters, and this process leaves when it has nothing to do.
        """
        if time.monotonic() - self._compared < _COMPARE_S:
            return
        self._compared = time.monotonic()
        if wire.digest_of_code() != self._code:
            self._process_table.fork_no_more()
            self._idle_s = 0.0

    def _when_possible(self, begin: Callable[[], None]) -> None:
        """Do it; if the system lacks something now and runs wait here, as soon as it can be done."""
        while True:
            try:
                return begin()
            except OSError as error:
                if error.errno not in _SHORT_OF or not len(self._queue):
                    raise
            time.sleep(_BREATH_S)

    def _poll(self, within_s: float) -> None:
        if self._paused and time.monotonic() >= self._paused_until:
            while self._paused:
                self._selector.register(self._paused.pop(), selectors.EVENT_READ, self._accept)
        for key, _ in self._selector.select(within_s):
            key.data(key.fileobj)

    @property
    def _poll_timeout_s(self) -> float:
        if len(self._queue) or self._paused or self._further is not None:
            return _QUEUE_TICK_S
        return _WATCH_TICK_S if len(self._process_table) or len(self._adopted) else _TICK_S

    def _listen(self, path: Path) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with wire.SocketName(path) as address:
            listener.bind(address)
        path.chmod(0o600)
        listener.listen(128)
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, self._accept)

    def _heed_signals(self) -> None:
        reading, writing = os.pipe()
        for handle in (reading, writing):
            os.set_blocking(handle, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._leave)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._selector.register(reading, selectors.EVENT_READ, self._drain)

    def _leave(self, *_: object) -> None:
        # Runs go on without us; readers judge them by their locks.
        self._leaving = True

    def _reattached_ended(self, handle: Any) -> None:
        self._selector.unregister(handle)
        self._adopted.ended(handle)

    def _drain(self, reading: Any) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(reading, 4096):
                pass

    def _accept(self, listener: Any) -> None:
        try:
            connection, _ = listener.accept()
        except OSError as error:
            if error.errno in _SHORT_OF:
                # Whoever knocks still waits, so the listener would be ready at once again, and nothing else heard.
                self._selector.unregister(listener)
                self._paused.append(listener)
                self._paused_until = time.monotonic() + _BREATH_S
            return
        uid = wire.peer_uid(connection)
        if uid is not None and uid != os.getuid():
            connection.close()
            return
        connection.setblocking(False)
        self._peers[connection.fileno()] = _Peer(connection, time.monotonic(), bytearray())
        self._selector.register(connection, selectors.EVENT_READ, self._on_readable)

    def _on_readable(self, connection: Any) -> None:
        peer = self._peers[connection.fileno()]
        try:
            part, handles, flags, _ = socket.recv_fds(connection, 65536, 1)
        except BlockingIOError:
            return
        except OSError:
            part, handles, flags = b"", [], 0
        if flags & socket.MSG_CTRUNC:
            part = b""  # its place was lost on the way, for want of descriptors, unix(7): the run would not count
        for handle in handles:
            if peer.place is not None:
                os.close(peer.place)
            peer.place = handle
        peer.data += part
        if not part or len(peer.data) > wire.MAX_MESSAGE:
            self._forget(peer)
        elif peer.data.endswith(b"\n"):
            self._selector.unregister(connection)
            self._peers.pop(connection.fileno(), None)
            self._answer(peer)
            self._let_go(peer)

    def _forget(self, peer: _Peer) -> None:
        self._selector.unregister(peer.connection)
        self._peers.pop(peer.connection.fileno(), None)
        self._let_go(peer)

    @staticmethod
    def _let_go(peer: _Peer) -> None:
        peer.connection.close()
        if peer.place is not None:
            os.close(peer.place)

    def _drop_slow_peers(self) -> None:
        limit = time.monotonic() - _SLOW_PEER_S
        for peer in [p for p in self._peers.values() if p.since < limit]:
            self._forget(peer)

    def _answer(self, peer: _Peer) -> None:
        self._last_used = time.monotonic()
        peer.connection.setblocking(True)
        peer.connection.settimeout(_SLOW_PEER_S)
        try:
            reply = self._reply(peer, wire.decode(bytes(peer.data)))
        except Exception as error:  # noqa: BLE001 - one bad request must not end the supervisor of other runs
            reply = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(OSError):
            peer.connection.sendall(wire.encode(reply) + b"\n")
        if reply.get("child") is not None and not self._warming:
            self._queue.start_waiting()  # now, not with the next round

    def _reply(self, peer: _Peer, message: dict[str, Any]) -> dict[str, Any]:
        match message.get("op"):
            case "launch" if self._warming:
                return {"ok": False, "error": "it is not ready to start runs yet"}
            case "launch" if wire.is_deserted(peer.connection):
                return {"ok": False, "error": "whoever asked has gone"}  # while we stood still: it starts another way
            case "launch":
                channel = peer.connection.fileno()
                pid = self._process_table.start(SpawnRequest.of(message), channel=channel, place=peer.place)
                return {"ok": True, "pid": pid}
            case "queue":
                self._queue.add(QueuedRun(SpawnRequest.of(message), int(message["limit"])))
                return {"ok": True, "waiting": len(self._queue)}
            case "nested":
                answer = answer_ask(self.home, self._queue, message)
                return {"ok": True, "child": answer.child, "refused": answer.refused}
            case "ping":
                counts = {"children": len(self._process_table), "waiting": len(self._queue)}
                return {"ok": True, "pid": os.getpid(), **counts}
            case "leave":
                self._leaving = True
                return {"ok": True}
            case other:
                return {"ok": False, "error": f"no such request: {other!r}"}


def _keep_days() -> float:
    from subagents_nb.catalog import load_settings

    return load_settings(Path.home(), environ=os.environ).keep_days


def main(argv: list[str], *, is_held: bool = False) -> int:
    """Become the supervisor of HOME for KEY, unless there is one. `is_held` says that the lock is ours already."""
    home, key, mode = StoreHome(Path(argv[0])), argv[1], argv[2] if len(argv) > 2 else "warm"
    os.umask(0o077)
    if not is_held:
        try:
            sign(hold(home.supervisor / f"{key}.lock"))
        except BlockingIOError:
            return 0
    os.chdir("/")
    keep_memory_private()  # variables of launchers come by
    adopt_orphans()
    host = Host(home, key, forking=mode == "warm")
    for path in (host.socket_path, wire.queue_path(home.supervisor, key)):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()  # we hold the lock of this key: whoever made it is gone
    if mode == "warm":
        host.prepare(_warm_up, _warm_up_further)
    # Not collected before: of what imports leave one object in seventy is garbage, and to look for it takes a tenth of
    # the start.
    gc.freeze()
    gc.enable()
    host.serve()
    return 0


def _warm_up() -> None:
    importlib.import_module("subagents_nb.runner.main").warm_up()


def _warm_up_further() -> Iterator[None]:
    yield from importlib.import_module("subagents_nb.runner.main").warm_up_further()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], is_held=True))
