"""The warm supervisor: one single-threaded process that has imported the model stack and forks runners.

It listens on a private Unix socket, reaps its children and records how they ended, at once, with no kernel alive. It
leaves after some idle time. Run as `python -m subagents_nb.supervisor.host HOME KEY`.
"""

from __future__ import annotations

import gc
import os
import sys

if __name__ == "__main__":
    # Collecting while importing costs a third of the time; see reference on start-up.
    gc.disable()
    if os.fork():
        os._exit(0)  # our starter reaps this one at once and never has us for a child
    os.setsid()

import contextlib
import selectors
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subagents_nb.domain.records import ProcessRecord
from subagents_nb.store.layout import StoreHome
from subagents_nb.store.lock import hold
from subagents_nb.store.writer import RunWriter
from subagents_nb.supervisor import wire
from subagents_nb.supervisor.child import become_runner
from subagents_nb.supervisor.ending import record_end, record_pending
from subagents_nb.supervisor.identity import start_ticks
from subagents_nb.supervisor.leftovers import end_leftovers, mark_of

IDLE_VARIABLE = "SUBAGENTS_NB_SUPERVISOR_IDLE_S"
_IDLE_S = 1800.0
_TICK_S = 5.0
_SLOW_PEER_S = 5.0


@dataclass(slots=True)
class _Peer:
    connection: socket.socket
    since: float
    data: bytearray


class Host:
    """The loop of the warm supervisor."""

    def __init__(self, home: StoreHome, key: str) -> None:
        self.home = home
        self.socket_path = home.supervisor / f"{key}.sock"
        self._children: dict[int, tuple[str, ProcessRecord]] = {}
        self._selector = selectors.DefaultSelector()
        self._peers: dict[int, _Peer] = {}
        self._idle_s = float(os.environ.get(IDLE_VARIABLE, _IDLE_S))
        self._last_used = time.monotonic()
        self._leaving = False
        self._listener: socket.socket | None = None
        self._wakeup: tuple[int, int] | None = None

    def serve(self) -> None:
        """Listen until there has been nothing to do for the idle time."""
        self._listen()
        while not self._leaving:
            for key, _ in self._selector.select(_TICK_S):
                key.data(key.fileobj)
            self._reap()
            self._drop_slow_peers()
            if not self._children and time.monotonic() - self._last_used > self._idle_s:
                break
        self._close()

    def _listen(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.socket_path.unlink()  # we hold the lock of this key: whoever made it is gone
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with wire.SocketName(self.socket_path) as address:
            listener.bind(address)
        self.socket_path.chmod(0o600)
        listener.listen(128)
        listener.setblocking(False)
        self._listener = listener
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        reading, writing = os.pipe()
        for handle in (reading, writing):
            os.set_blocking(handle, False)
        self._wakeup = (reading, writing)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._leave)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._selector.register(reading, selectors.EVENT_READ, self._drain)

    def _leave(self, *_: object) -> None:
        # Runs go on without us; readers judge them by their locks.
        self._leaving = True

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket_path.unlink()

    def _drain(self, reading: Any) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(reading, 4096):
                pass

    def _accept(self, listener: Any) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        uid = wire.peer_uid(connection)
        if uid is not None and uid != os.getuid():
            connection.close()
            return
        connection.setblocking(False)
        self._peers[connection.fileno()] = _Peer(connection, time.monotonic(), bytearray())
        self._selector.register(connection, selectors.EVENT_READ, self._hear)

    def _hear(self, connection: Any) -> None:
        peer = self._peers[connection.fileno()]
        try:
            part = connection.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        peer.data += part
        if not part or len(peer.data) > wire.MAX_MESSAGE:
            self._forget(peer)
        elif peer.data.endswith(b"\n"):
            message = bytes(peer.data)
            self._forget(peer, close=False)
            self._answer(connection, message)

    def _forget(self, peer: _Peer, *, close: bool = True) -> None:
        self._selector.unregister(peer.connection)
        self._peers.pop(peer.connection.fileno(), None)
        if close:
            peer.connection.close()

    def _drop_slow_peers(self) -> None:
        limit = time.monotonic() - _SLOW_PEER_S
        for peer in [p for p in self._peers.values() if p.since < limit]:
            self._forget(peer)

    def _answer(self, connection: socket.socket, line: bytes) -> None:
        self._last_used = time.monotonic()
        connection.setblocking(True)
        connection.settimeout(_SLOW_PEER_S)
        try:
            message = wire.decode(line)
            match message.get("op"):
                case "launch":
                    reply = self._launch(connection, message)
                case "ping":
                    reply = {"ok": True, "pid": os.getpid(), "children": len(self._children)}
                case "leave":
                    self._leaving = True
                    reply = {"ok": True}
                case other:
                    reply = {"ok": False, "error": f"no such request: {other!r}"}
        except Exception as error:  # noqa: BLE001 - one bad request must not end the supervisor of other runs
            reply = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(OSError):
            connection.sendall(wire.encode(reply))
        connection.close()

    def _launch(self, connection: socket.socket, message: dict[str, Any]) -> dict[str, Any]:
        run_id, token = str(message["run_id"]), str(message["token"])
        paths = self.home.run(run_id)
        threads = _thread_count()
        if threads != 1:
            raise RuntimeError(f"forking with {threads} threads is unsafe")
        pid = os.fork()
        if pid == 0:
            self._in_child(connection, paths.root, str(message["cwd"]), dict(message["environ"]))
        ticks = start_ticks(pid)
        started = record_pending(RunWriter(paths), spawn="warm", token=token, pid=pid, ticks=ticks)
        self._children[pid] = (run_id, started)
        return {"ok": True, "pid": pid, "start_ticks": ticks, "spawn": "warm"}

    def _in_child(self, connection: socket.socket, root: Path, cwd: str, environ: dict[str, str]) -> None:
        code = 70
        try:
            become_runner(run_root=root, cwd=cwd, environ=environ, keep=connection.fileno())
            # The runner is known here by its entry point only.
            import importlib

            entry = importlib.import_module("subagents_nb.runner.main")
            connection.settimeout(None)
            code = entry.run(root, barrier=connection.makefile("rb", buffering=0))
        except BaseException:  # noqa: BLE001 - a fork must never return into the supervisor's loop
            import traceback

            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stderr.flush()
                sys.stdout.flush()
            os._exit(code)

    def _reap(self) -> None:
        for pid in list(self._children):
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                continue
            run_id, started = self._children.pop(pid)
            left = end_leftovers(pid, mark_of(run_id, started.token))
            _, status = os.waitpid(pid, 0)
            code = os.waitstatus_to_exitcode(status)
            self._last_used = time.monotonic()
            try:
                record_end(
                    self.home,
                    run_id,
                    started=started,
                    exit_code=code if code >= 0 else None,
                    signal=-code if code < 0 else None,
                    left=left,
                    judge="supervisor",
                )
            except Exception as error:  # noqa: BLE001 - one run's broken directory must not end the supervisor of others
                print(f"run {run_id}: its end was not recorded: {error}", file=sys.stderr, flush=True)  # noqa: T201


def _thread_count() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        import threading

        return threading.active_count()


def _warm_up() -> None:
    import importlib

    importlib.import_module("subagents_nb.runner.main").warm_up()


def main(argv: list[str]) -> int:
    """Become the supervisor of HOME for KEY, unless there is one."""
    home, key = StoreHome(Path(argv[0])), argv[1]
    os.umask(0o077)
    try:
        hold(home.supervisor / f"{key}.lock")
    except BlockingIOError:
        return 0
    os.chdir("/")
    _warm_up()
    gc.collect()
    gc.freeze()
    gc.enable()
    Host(home, key).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
