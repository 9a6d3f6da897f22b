"""A member as remote-pi 0.4.2 has it, with its election: it probes, removes a socket that refuses, binds, and waits 100 ms
after a leader is gone. As a program: `foreign.py SOCKET NAME`."""
import os
import random
import socket
import stat
import sys
import threading
import time

from leader import Leader, listen
from wire import Wire


def join_or_lead(path):
    """A listener if this process leads, else None."""
    for _ in range(20):
        if os.path.exists(path):
            try:
                probe = socket.socket(socket.AF_UNIX)
                probe.settimeout(0.5)
                probe.connect(path)
                probe.close()
                return None
            except OSError:
                try:
                    if stat.S_ISSOCK(os.lstat(path).st_mode):
                        os.unlink(path)
                except OSError:
                    pass
        try:
            return listen(path)
        except OSError:
            time.sleep(0.03 + random.random() * 0.07)
    raise SystemExit("leader election failed after 20 attempts")


def serve(path, name):
    """One life under one leader."""
    listener = join_or_lead(path)
    if listener is not None:
        threading.Thread(target=Leader(listener).run, daemon=True).start()
    try:
        wire = Wire(path)
        wire.socket.settimeout(5)
        wire.register(name)
        wire.socket.settimeout(None)
        while wire.line() is not None:
            pass
    except (OSError, AssertionError):
        pass


if __name__ == "__main__":
    while True:
        serve(sys.argv[1], sys.argv[2])
        time.sleep(0.1)
