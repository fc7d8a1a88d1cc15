"""Thirty ways out of a sandbox, as Python and as lines of a shell: each prints its name if it came through.

A canary stands for what is not to be seen; `outside` is a folder of the person's, `pid` a process of theirs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

# Names of what is aimed at: outside, home, store, canary (a text), pid, port, abstract (a socket), socket (a path).
SHELL: Mapping[str, str] = {
    "write outside": "echo x > {outside}/made",
    "write home": "echo x > {home}/.profile && grep -q x {home_seen}/.profile",
    "read key": "grep -q {canary} {home}/.ssh/id_ed25519",
    "read outside by parent": "grep -q {canary} ../outside/secret",
    "link out": "ln -sf {outside}/secret l && grep -q {canary} l",
    "link to write": "ln -sfn {outside} o && echo x > o/made",
    "hard link": "ln {outside}/secret h && grep -q {canary} h",
    "rename out": "echo x > r && mv r {outside}/made",
    "etc": "echo x > /etc/made",
    "usr": "echo x > /usr/made",
    "loopback": "exec 3<>/dev/tcp/127.0.0.1/{port}",
    "loopback 6": "exec 3<>/dev/tcp/localhost/{port}",
    "proc environ": "tr '\\0' '\\n' < /proc/{pid}/environ | grep -q {canary}",
    "proc root": "grep -q {canary} /proc/{pid}/root{outside}/secret",
    "proc cwd": "ls /proc/{pid}/cwd/",
    "proc parent": "tr '\\0' '\\n' < /proc/$PPID/environ | grep -q {canary}",
    "proc 1 root": "grep -q {canary} /proc/1/root{outside}/secret",
    "descriptors of the first": "ls -l /proc/1/fd | grep -vE 'pipe:|socket:|anon_inode|/dev/null|total' | grep -q .",
    "own environ": "env | grep -q {canary}",
    "kill": "kill -0 {pid}",
    "kill all": "test $(ps ax | wc -l) -gt 12",
    "mount": "mount -t tmpfs none /mnt",
    "remount": "mount -o remount,rw,bind /usr && echo x > /usr/made",
    "unmount store": "umount {store} && grep -q {canary} {store}/trust.json",
    "namespaces": "unshare -Ur true",
    "enter": "nsenter -t 1 -m grep -q {canary} {outside}/secret",
    "chroot": "chroot /proc/1/root grep -q {canary} {outside}/secret",
    "device": "mknod d b 8 0 && head -c 1 d",
    "disk": "head -c 1 /dev/vda || head -c 1 /dev/sda",
    "store": "ls {store}/runs/*/status.json",
    "trust": "grep -q {canary} {store}/trust.json",
    "write trust": "echo x >> {store}/trust.json && grep -q x {store_seen}/trust.json",
    "docker": "ls /run/docker.sock || ls /var/run/docker.sock",
    "sysctl": "echo x > /proc/sys/kernel/hostname",
    "core pattern": "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern",
    "caches": "echo 1 > /proc/sys/vm/drop_caches",
    "trigger": "echo h > /proc/sysrq-trigger",
    "cgroup": "mkdir /sys/fs/cgroup/made",
    "setuid": "cp $(command -v id) i && chmod u+s i && ./i -u | grep -qv $(id -u)",
    "sudo": "sudo -n true",
    "shadow": "test -s /etc/shadow && cat /etc/shadow",
    "git hooks": "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
    "git settings": "git config core.fsmonitor x",
    "git moved": "mv .git .g",
    "agents": "echo x > .claude/settings.json",
    "agents moved": "mv .claude .c",
    "memory": "ls .subagents/memory/note.md",
    "environment": "echo x > {prefix}/made",
}
PYTHON: Mapping[str, str] = {
    "write outside": "open({outside!r} + '/made', 'w')",
    "read outside": "assert {canary!r} in open({outside!r} + '/secret').read()",
    "read key": "assert {canary!r} in open({home!r} + '/.ssh/id_ed25519').read()",
    "link out": "os.symlink({outside!r} + '/secret', 'pl'); assert {canary!r} in open('pl').read()",
    "hard link": "os.link({outside!r} + '/secret', 'ph')",
    "folders by descriptor": "assert any(walked(int(n)) for n in os.listdir('/proc/self/fd'))",
    "folders of others": "assert any(os.path.exists(f'/proc/{{p}}/root' + {outside!r} + '/secret') for p in pids())",
    "open by handle": "assert libc.open_by_handle_at(-100, b'0' * 128, 0) >= 0",
    "loopback": "socket.create_connection(('127.0.0.1', {port}), 2)",
    "loopback 6": "socket.create_connection(('::1', {port}), 2)",
    "network": "socket.create_connection(('10.0.2.2', 80), 2)",
    "abstract socket": "unix('\\0' + {abstract!r})",
    "socket file": "unix({socket!r})",
    "socket of the kernel's peer": "unix({store!r} + '/supervisor/host.sock')",
    "environ": "assert {canary!r} in str(os.environ)",
    "environ of others": "assert any({canary!r} in environ(p) for p in pids())",
    "parent": "assert os.getppid() not in (0, 1)",
    "kill": "os.kill({pid}, 0)",
    "kill group": "assert len(pids()) > 12",
    "ptrace attach": "assert libc.ptrace(16, {pid}, 0, 0) == 0",
    "ptrace seize": "assert libc.ptrace(0x4206, {pid}, 0, 0) == 0",
    "read memory": "assert any(memory(p) for p in ({pid}, os.getppid()))",
    "pidfd": "os.pidfd_open({pid})",
    "namespace of first": "assert libc.setns(os.open('/proc/1/ns/mnt', 0), 0) == 0; open({outside!r} + '/secret')",
    "new namespace": "assert libc.unshare(0x10000000) == 0",
    "mount": "assert libc.mount(b'none', b'/mnt', b'tmpfs', 0, None) == 0",
    "unmount": "assert libc.umount2({store!r}.encode(), 2) == 0",
    "root": "os.chroot('/proc/1/root'); assert os.path.exists({outside!r} + '/secret')",
    "user": "os.setuid(12345)",
    "module": "assert libc.init_module(None, 0, b'') == 0",
    "key": "assert libc.syscall(250, 11, -4, 0, 0, 0) > 0",
    "shared memory": "assert any(line.split()[0] != 'key' for line in open('/proc/sysvipc/shm'))",
    "folder of tables": "moved({store!r} + '/runs/r/steps/0/kernel')",
    "folder of tables by the other name": "moved('/run/kernel')",
    "status": "assert {canary!r} in open({store!r} + '/runs/r/status.json').read()",
    "trust": "assert {canary!r} in open({store!r} + '/trust.json').read()",
    "dev": "open('/dev/mem', 'rb')",
    "bpf": "assert libc.syscall(321, 0, None, 0) >= 0 or ctypes.get_errno() not in (1, 22)",
    "git hooks": "os.makedirs('.git/hooks', exist_ok=True); open('.git/hooks/p', 'w')",
    "git moved": "os.rename('.git', '.g')",
    "memory": "open('.subagents/memory/note.md').read()",
    "environment": "open({prefix!r} + '/made', 'w')",
    "code": "open({package!r} + '/__init__.py', 'a')",
    "launch": "import subagents_nb; subagents_nb.launch('scout', 't', model='scripted:echo')",
}
_HELP = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def pids(): return [int(n) for n in os.listdir('/proc') if n.isdigit()]
def environ(p):
    try: return open(f'/proc/{p}/environ').read() if p != os.getpid() else ''
    except OSError: return ''
def unix(address):
    with socket.socket(socket.AF_UNIX) as s: s.connect(address)
def moved(folder): os.rename(folder + '/tables', folder + '/t')
def memory(p):
    try: return open(f'/proc/{p}/mem', 'rb', 0).fileno() and p != os.getpid() and p != os.getppid()
    except OSError: return False
def walked(fd):
    try: way = os.path.relpath(OUTSIDE + '/secret', os.readlink(f'/proc/self/fd/{fd}'))
    except OSError: return False
    return os.path.exists(f'/proc/self/fd/{fd}/{way}')
"""


def shell_script(**aims: object) -> str:
    """Return all of them as one script."""
    lines = (
        f"( {body.format(**aims)} ) >/dev/null 2>&1 && echo 'CAME THROUGH: {name}'" for name, body in SHELL.items()
    )
    return "\n".join([*lines, "echo all tried"])


def python_cell(**aims: object) -> str:
    """Return all of them as one cell."""
    parts = [_HELP.replace("OUTSIDE", repr(aims["outside"]))]
    for name, body in PYTHON.items():
        told = f"print('CAME THROUGH:', {name!r})"
        tried = textwrap.indent(body.format(**aims), "    ")
        parts.append(f"try:\n{tried}\n    {told}\nexcept BaseException as error:\n    pass\n")
    return "\n".join([*parts, "print('all tried')"])
