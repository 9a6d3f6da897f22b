"""Carries out file operations, one JSON object a line, and prints for each `[errno, text]`; errno 0 is success."""

import ctypes
import errno
import json
import mmap
import os
import socket
import stat
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_char_p]
RENAMEAT2 = {"x86_64": 316}.get(os.uname().machine, 276)
NAME_TO_HANDLE_AT, OPEN_BY_HANDLE_AT = {"x86_64": (303, 304)}.get(os.uname().machine, (264, 265))
OPENAT2 = 437
CWD = -100
EXCHANGE = 2
MS_BIND = 4096
held = []


def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "call")
    return result


def check_mode(op):
    return op["n"] & 0o7777


class Place:
    """A path as the operation spells it: relative to an open directory, or through the descriptor of the file."""

    def __init__(self, spelled):
        self.fds = []
        self.dir = None
        self.path = spelled["path"]
        if spelled.get("at") is not None:
            self.dir = self.keep(os.open(spelled["at"], os.O_PATH | os.O_DIRECTORY))
        if spelled.get("fd"):
            self.path = f"/proc/self/fd/{self.keep(os.open(self.path, os.O_PATH))}"

    def keep(self, fd):
        self.fds.append(fd)
        return fd

    def text(self):
        """The same for a call that takes no directory."""
        return self.path if self.dir is None else f"/proc/self/fd/{self.dir}/{self.path}"

    def close(self):
        for fd in self.fds:
            os.close(fd)


def opened(place, flags, mode=0o644):
    return os.open(place.path, flags | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=place.dir)


def put(place, flags, text):
    fd = opened(place, flags)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def map_over(place, text):
    fd = opened(place, os.O_RDWR)
    try:
        size = os.fstat(fd).st_size
        if not stat.S_ISREG(os.fstat(fd).st_mode) or size < len(text):
            raise OSError(errno.EINVAL, "too short")
        with mmap.mmap(fd, size) as memory:
            memory[: len(text)] = text.encode()
    finally:
        os.close(fd)


def read(place):
    fd = opened(place, os.O_RDONLY)
    try:
        return os.read(fd, 65536).decode(errors="replace")
    finally:
        os.close(fd)


def listed(place):
    fd = opened(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return "\n".join(sorted(os.listdir(fd)))
    finally:
        os.close(fd)


def copy(a, b):
    source = opened(a, os.O_RDONLY)
    try:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            raise OSError(errno.EINVAL, "no file")
        target = opened(b, os.O_WRONLY | os.O_TRUNC)
        try:
            while os.copy_file_range(source, target, 65536) > 0:
                pass
        finally:
            os.close(target)
    finally:
        os.close(source)


def renamed(a, b, flags):
    dirs = [CWD if place.dir is None else place.dir for place in (a, b)]
    called(libc.syscall(RENAMEAT2, dirs[0], a.path.encode(), dirs[1], b.path.encode(), flags))


def unnamed(a, b):
    """A file without a name, made in one directory and given a name in another one."""
    fd = os.open(a.text(), os.O_TMPFILE | os.O_WRONLY, 0o644)
    try:
        os.link(f"/proc/self/fd/{fd}", b.path, dst_dir_fd=b.dir, follow_symlinks=True)
    finally:
        os.close(fd)


def by_handle(path):
    """Opens a file by its number on the disk, which no path and no mount has a part in."""
    handle = ctypes.create_string_buffer(136)
    ctypes.cast(handle, ctypes.POINTER(ctypes.c_uint))[0] = 128
    number = ctypes.c_int()
    called(libc.syscall(NAME_TO_HANDLE_AT, CWD, path.encode(), handle, ctypes.byref(number), 0))
    anchor = os.open(".", os.O_RDONLY)
    os.close(called(libc.syscall(OPEN_BY_HANDLE_AT, anchor, handle, os.O_RDWR)))


def race(path, name):
    """Swaps a directory of its own for a link that leads to `path`, and writes through what it finds."""
    for made in ("race", "race/real"):
        os.makedirs(made, exist_ok=True)
    for lead in ("race/link", "race/way"):
        if os.path.lexists(lead):
            os.remove(lead)
    os.symlink("real", "race/way")
    os.symlink(path, "race/link")
    child = os.fork()
    if child == 0:
        for _ in range(60):
            libc.syscall(RENAMEAT2, CWD, b"race/link", CWD, b"race/way", EXCHANGE)
        os._exit(0)
    for _ in range(30):
        for flags in (os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_TRUNC):
            try:
                os.close(os.open(f"race/way/{name}", flags | os.O_NONBLOCK, 0o644))
                os.chmod(f"race/way/{name}", 0o700)
            except OSError:
                pass
    os.waitpid(child, 0)


def listen(path):
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)


def hold(path):
    held.append(os.open(path, os.O_PATH | os.O_DIRECTORY))


def from_held(number, path):
    if not held:
        raise OSError(errno.ENOENT, "nothing is held")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, 0o644, dir_fd=held[number % len(held)]))


def other_mount(op, kind, flags):
    called(libc.mount(op["s"].encode(), op["raw"].encode(), kind, flags, None))


# Operations on one place.
ONE = {
    "create": lambda p, op: put(p, os.O_CREAT | os.O_EXCL | os.O_WRONLY, op["s"]),
    "write": lambda p, op: put(p, os.O_WRONLY | os.O_TRUNC, op["s"]),
    "put": lambda p, op: put(p, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, op["s"]),
    "append": lambda p, op: put(p, os.O_WRONLY | os.O_APPEND, op["s"]),
    "truncate": lambda p, op: os.truncate(p.text(), op["n"]),
    "map": lambda p, op: map_over(p, op["s"]),
    "read": lambda p, op: read(p),
    "list": lambda p, op: listed(p),
    "mkdir": lambda p, op: os.mkdir(p.path, 0o755, dir_fd=p.dir),
    "rmdir": lambda p, op: os.rmdir(p.path, dir_fd=p.dir),
    "unlink": lambda p, op: os.unlink(p.path, dir_fd=p.dir),
    "symlink": lambda p, op: os.symlink(op["s"], p.path, dir_fd=p.dir),
    "mkfifo": lambda p, op: os.mkfifo(p.path, 0o644, dir_fd=p.dir),
    "mknod": lambda p, op: os.mknod(p.path, 0o644 | stat.S_IFREG, dir_fd=p.dir),
    "device": lambda p, op: os.mknod(
        p.path, 0o644 | (stat.S_IFCHR if op["n"] < 256 else stat.S_IFBLK), op["n"], dir_fd=p.dir
    ),
    "chmod": lambda p, op: os.chmod(p.path, check_mode(op), dir_fd=p.dir),
    "chown": lambda p, op: os.chown(p.path, op["n"], op["n"], dir_fd=p.dir),
    "keep_owner": lambda p, op: os.chown(p.path, os.getuid(), os.getgid(), dir_fd=p.dir),
    "utimes": lambda p, op: os.utime(p.path, (op["n"], op["n"]), dir_fd=p.dir),
    "setxattr": lambda p, op: os.setxattr(p.text(), "user.test", op["s"].encode()),
    "capability": lambda p, op: os.setxattr(
        p.text(), "security.capability", b"\x01\x00\x00\x02\xff" + bytes(15)
    ),
}
# Operations on two.
TWO = {
    "rename": lambda a, b: renamed(a, b, 0),
    "exchange": lambda a, b: renamed(a, b, EXCHANGE),
    "link": lambda a, b: os.link(
        a.path, b.path, src_dir_fd=a.dir, dst_dir_fd=b.dir, follow_symlinks=False
    ),
    "copy": copy,
    "unnamed": unnamed,
}
# Ways that lead past a name; the path is taken as it is.
RAW = {
    "bind": lambda op: other_mount(op, None, MS_BIND),
    "tmpfs": lambda op: other_mount(op, b"tmpfs", 0),
    "umount": lambda op: called(libc.umount2(op["raw"].encode(), 2)),
    "chroot": lambda op: os.chroot(op["raw"]),
    "handle": lambda op: by_handle(op["raw"]),
    "openat2": lambda op: called(libc.syscall(OPENAT2, CWD, op["raw"].encode(), bytes(24), 24)),
    "listen": lambda op: listen(op["raw"]),
    "first": lambda op: os.close(os.open(f"/proc/{op['n']}/root{op['raw']}", os.O_WRONLY | os.O_NONBLOCK)),
    "hold": lambda op: hold(op["raw"]),
    "held": lambda op: from_held(op["n"], op["raw"]),
    "race": lambda op: race(op["raw"], op["s"]),
}


def play(op):
    if op["op"] in RAW:
        return RAW[op["op"]](op)
    places = []
    try:
        for name in ("p", "q"):
            if op.get(name) is not None:
                places.append(Place(op[name]))
        if op["op"] in TWO:
            return TWO[op["op"]](*places)
        return ONE[op["op"]](*places, op)
    finally:
        for place in places:
            place.close()


os.umask(0o022)
with open(sys.argv[1]) as script:
    for line in script:
        try:
            said = play(json.loads(line))
            print(json.dumps([0, said if isinstance(said, str) else None]))
        except OSError as error:
            print(json.dumps([error.errno or -1, None]))
