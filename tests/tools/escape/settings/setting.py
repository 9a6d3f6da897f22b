"""Starts a program on a machine that forbids something: setting.py SETTING PROGRAM ARGUMENT..."""

import ctypes
import os
import signal
import struct
import sys

SETTING, PROGRAM = sys.argv[1], sys.argv[2:]

libc = ctypes.CDLL(None, use_errno=True)
libc.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]
ARM = os.uname().machine == "aarch64"
UNSHARE, SETNS, MOUNT = (97, 268, 40) if ARM else (272, 308, 165)
LANDLOCK_CREATE_RULESET = 444
NEWNS, NEWUSER, NEWPID = 0x20000, 0x10000000, 0x20000000
RDONLY, REMOUNT, BIND, REC, PRIVATE = 1, 32, 4096, 16384, 1 << 18
EPERM, ENOSYS = 1, 38
NO_NEW_PRIVS, SECCOMP, CAPBSET_DROP = 38, 22, 24
# The capabilities that Docker leaves to root in a container.
KEPT = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}
# The parts of /proc that Docker covers and makes read-only.
MASKED = ["acpi", "asound", "kcore", "keys", "latency_stats", "timer_list", "scsi"]
READ_ONLY = ["bus", "fs", "irq", "sys", "sysrq-trigger"]


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


def refuse(calls, error):
    """Makes these system calls fail in this process and its descendants."""
    load, equal, give = 0x20, 0x15, 0x06
    program = [(load, 0, 0, 0)]
    for index, call in enumerate(calls):
        program.append((equal, len(calls) - index, 0, call))
    program += [(give, 0, 0, 0x7FFF0000), (give, 0, 0, 0x00050000 | error)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    check(libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    check(libc.prctl(SECCOMP, 2, head, 0, 0), "seccomp")


def mount(source, target, kind, flags, options=None):
    encoded = [None if text is None else text.encode() for text in (source, target, kind)]
    check(libc.mount(*encoded, flags, options), target)


def wait_for(child):
    """Returns in the child; its parent ends as the child does."""
    ended = None
    while child and ended != child:
        ended, status = os.wait()
    if child:
        os._exit(os.waitstatus_to_exitcode(status) % 256)


def contain():
    """A container as Docker makes it: processes of its own, and parts of /proc covered."""
    user, group = os.geteuid(), os.getegid()
    check(libc.unshare(NEWNS | NEWPID | (NEWUSER if user else 0)), "unshare")
    if user:
        for name, text in [("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")]:
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    wait_for(os.fork())
    mount(None, "/", None, REC | PRIVATE)
    mount("proc", "/proc", "proc", 0)
    # So no process of the container has the number of one in the world of a command.
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write("20000")
    for name in MASKED:
        path = f"/proc/{name}"
        if os.path.isdir(path):
            mount("tmpfs", path, "tmpfs", RDONLY)
        elif os.path.exists(path):
            mount("/dev/null", path, None, BIND)
    for name in READ_ONLY:
        path = f"/proc/{name}"
        if os.path.exists(path):
            mount(path, path, None, BIND | REC)
            mount(None, path, None, BIND | REMOUNT | RDONLY)
    for power in set(range(41)) - KEPT:
        libc.prctl(CAPBSET_DROP, power, 0, 0, 0)


if SETTING.startswith("container"):
    contain()
    # The first process of a container takes in what others leave.
    wait_for(os.fork())
if SETTING in ("no user namespaces", "container that forbids namespaces"):
    refuse([UNSHARE, SETNS], EPERM)
if SETTING == "container that forbids namespaces":
    refuse([MOUNT], EPERM)
if SETTING == "no Landlock":
    refuse([LANDLOCK_CREATE_RULESET], ENOSYS)
# Python ignores these, and what it starts would, too.
for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(ignored, signal.SIG_DFL)
os.execv(PROGRAM[0], PROGRAM)
