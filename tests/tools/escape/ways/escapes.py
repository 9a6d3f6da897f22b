"""Tries escapes from the sandbox. Each is a function that returns if it succeeded and raises if it was prevented. Prints the names of those that returned, one a line."""

import ctypes
import errno
import glob
import os
import shutil
import signal
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
ARM = os.uname().machine == "aarch64"
OUT = "../outside"
SECRET = f"{OUT}/secret"
HOME = os.environ["HOME"]
PID = int(open("bystander").read())
TCP, ABSTRACT, SHM, KEY = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])


class Stopped(Exception):
    pass


def needs(held):
    if not held:
        raise Stopped


def call(x86, arm, *arguments):
    """A system call that seccomp allows is an escape, even if it then fails because of its arguments."""
    ctypes.set_errno(0)
    libc.syscall(arm if ARM else x86, *arguments)
    needs(ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, errno.EACCES))


def write(path, flags=0):
    os.close(os.open(path, os.O_WRONLY | flags, 0o644))


def read(path, holds):
    with open(path, "rb") as file:
        needs(holds.encode() in file.read(65536))


def by_number(x86, arm, *arguments):
    """Makes a system call on the bystander; fails unless the call succeeds."""
    needs(libc.syscall(arm if ARM else x86, *arguments) >= 0)


# Files outside the scope.
def read_outside(): read(SECRET, "outside")
def list_outside(): needs(os.listdir(OUT))
def read_over_dots(): read("deep/../../outside/secret", "outside")
def read_over_root(): read(f"/proc/self/root{os.path.realpath('..')}/outside/secret", "outside")
def write_outside(): write(SECRET)
def make_outside(): write(f"{OUT}/new", os.O_CREAT)
def make_directory_outside(): os.mkdir(f"{OUT}/new-directory")
def empty_outside(): os.truncate(SECRET, 0)
def remove_outside(): os.remove(f"{OUT}/to-remove")
def move_in(): os.rename(f"{OUT}/to-move", "moved")
def move_out(): os.rename("own", f"{OUT}/moved-out")
def link_in(): os.link(SECRET, "linked")
def link_out(): os.link("own", f"{OUT}/linked-out")
def through_link():
    os.symlink(f"{OUT}/new-by-link", "lead")
    write("lead", os.O_CREAT)
def mode_outside(): os.chmod(SECRET, 0o604)
def owner_outside(): os.chown(SECRET, os.getuid(), os.getgid())
def time_outside(): os.utime(SECRET, (1, 1))
def attribute_outside(): os.setxattr(SECRET, "user.by-command", b"x")
def look_outside(): os.stat(SECRET)
def watch_outside(): needs(libc.inotify_add_watch(libc.inotify_init(), OUT.encode(), 0xFFF) >= 0)


# Guarded paths in the scope.
def write_lent(): write("deep/lent/file")
def make_in_lent(): write("deep/lent/new", os.O_CREAT)
def remove_lent(): os.remove("deep/lent/file")
def move_lent(): os.rename("deep", "deeper")
def read_kept(): read("kept/file", "hidden")
def list_kept(): needs(os.listdir("kept"))
def write_hook(): write(".git/hooks/pre-commit", os.O_CREAT)
def write_git_config(): write(".git/config")
def lead_git_astray(): open(".git/commondir", "w").write("../evil")
def lose_head(): os.rename(".git/HEAD", ".git/was")
def write_program(): write("bin/tool")
def write_rules(): write(".yoi/config.toml")
def set_id():
    shutil.copy("/bin/true", "set-id")
    os.chmod("set-id", 0o4755)
def make_device(): os.mknod("device", 0o20644, os.makedev(1, 1))
def make_whiteout(): os.mknod("whiteout", 0o20644, 0)


# The person's home, yoi's own directories and other Pods.
def read_key(): read(f"{HOME}/.ssh/id", "hidden")
def read_netrc(): read(f"{HOME}/.netrc", "hidden")
def read_own(): read("../own/yoi.db", "hidden")
def read_other(): read("../other/file", "hidden")
def write_other(): write("../other/file")
def leave_npmrc(): write(f"{HOME}/.npmrc", os.O_CREAT)
def leave_program(): os.makedirs(f"{HOME}/bin")
def read_git_password(): read(f"{HOME}/.gitconfig", "token")
def write_cache(): write(f"{HOME}/.cache/new", os.O_CREAT)


# Other processes.
def list_others():
    # Other processes end meanwhile.
    for file in glob.glob("/proc/[0-9]*/cmdline"):
        try: return read(file, "bystander-971.25")
        except (OSError, Stopped): pass
    raise Stopped
def read_environment(): read(f"/proc/{PID}/environ", "in-the-environment")
def enter_directory(): os.listdir(f"/proc/{PID}/cwd")
def follow_descriptor(): os.readlink(f"/proc/{PID}/fd/0")
def signal_other(): os.kill(PID, signal.SIGURG)
def signal_by_handle(): signal.pidfd_send_signal(os.pidfd_open(PID), signal.SIGURG)
def signal_all(): os.kill(-1, signal.SIGURG)
def trace(): by_number(101, 117, 0x4206, PID, 0, 0)
def read_memory():
    at = ctypes.create_string_buffer(16)
    vector = (ctypes.c_uint64 * 2)(ctypes.addressof(at), 8)
    by_number(310, 270, PID, vector, 1, vector, 1, 0)
def take_descriptor(): by_number(438, 438, os.pidfd_open(PID), 0, 0)
def limit_other(): by_number(302, 261, PID, 1, (ctypes.c_uint64 * 2)(1 << 30, 1 << 30), None)
def slow_other(): os.setpriority(os.PRIO_PROCESS, PID, 5)
def pin_other(): os.sched_setaffinity(PID, {0})


# Sockets, shared memory, System V IPC, the network.
def local_socket(): socket.socket(socket.AF_UNIX).connect(f"{OUT}/door")
def abstract_socket(): socket.socket(socket.AF_UNIX).connect("\0" + ABSTRACT)
def tcp(): socket.create_connection(("127.0.0.1", int(TCP)), 5)
def raw_packets(): socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
def crypto_socket(): socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)
def machine_socket(): socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
def shared_file(): read(f"/dev/shm/{SHM}", "hidden")
def numbered_memory(): needs(libc.shmget(KEY, 0, 0) >= 0)
def numbered_queue(): needs(libc.msgget(KEY, 0) >= 0)


# The kernel.
def mounting(): call(165, 40, 0, 0, 0, 0, 0)
def unmounting(): call(166, 39, 0, 0)
def new_user(): call(272, 97, 0x10000000)
def new_mounts(): call(272, 97, 0x20000)
def joining(): call(308, 268, -1, 0)
def new_root(): call(155, 41, 0, 0)
def other_root(): call(161, 51, 0)
def mount_object(): call(428, 428, -100, 0, 0)
def mount_context(): call(430, 430, 0, 0)
def mount_attributes(): call(442, 442, -1, 0, 0, 0, 0)
def by_file_handle(): call(304, 265, -1, 0, 0)
def ring(): call(425, 425, 1, 0)
def kernel_program(): call(321, 280, 0, 0, 0)
def measuring(): call(298, 241, 0, 0, -1, -1, 0)
def page_faults(): call(323, 282, 1)
def kernel_keys(): call(250, 219, 0, -3, 0)
def new_key(): call(248, 217, 0, 0, 0, 0, -3)
def module(): call(313, 273, -1, 0, 0)
def kernel_image(): call(246, 104, 0, 0, 0, 0)
def swap(): call(167, 224, 0, 0)
def core_pattern(): write("/proc/sys/kernel/core_pattern")
def magic_keys(): write("/proc/sysrq-trigger")
def out_of_memory_score(): write("/proc/self/oom_score_adj")
def list_keys(): needs(open("/proc/keys").read())
def kernel_log(): os.close(os.open("/dev/kmsg", os.O_RDONLY))
def kernel_memory(): os.close(os.open("/proc/kcore", os.O_RDONLY))


# Resources of the machine.
def processes():
    for _ in range(800):
        if os.fork() == 0:
            signal.pause()
def shared_memory():
    with open("/dev/shm/large", "wb") as file:
        file.write(bytes(4 << 20))
def large_file():
    with open("large", "wb") as file:
        file.truncate(64 << 20)


def succeeds(name, way):
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        signal.alarm(20)
        try:
            way()
        except BaseException:
            os._exit(1)
        os._exit(0)
    ended = os.waitpid(child, 0)[1]
    try:
        while True:
            os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return ended == 0


ways = [(name, way) for name, way in list(globals().items()) if callable(way) and getattr(way, "__module__", None) == "__main__"]
helpers = ("Stopped", "needs", "call", "write", "read", "by_number", "succeeds")
signal.signal(signal.SIGURG, signal.SIG_IGN)
for name, way in ways:
    if name not in helpers:
        print(name, succeeds(name, way))
