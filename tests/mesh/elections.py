"""Kills the leader of a mesh again and again, with members of yoi and of another program, while messages are sent:
`elections.py YOI SOCKET COUNT`. After each kill all members of yoi must be in one roster within 2 s, and what was
acknowledged must have arrived once. Prints the figures; fails where a promise is broken."""
import json
import os
import random
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time

from wire import Wire

YOI, PATH, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
OURS, OTHERS = 4, 4
HERE = os.path.dirname(os.path.abspath(__file__))
DIR = os.path.join(os.path.dirname(os.path.dirname(PATH)), "printed")


class Tail:
    """`yoi mesh tail` under a name."""

    def __init__(self, name, number):
        self.name = name
        self.file = os.path.join(DIR, f"{name}.{number}")
        with open(self.file, "w") as out, open(self.file + ".err", "w") as err:
            words = [YOI, "mesh", "tail", "--json", "--name", name]
            self.process = subprocess.Popen(words, stdout=out, stderr=err, stdin=subprocess.DEVNULL)

    def texts(self):
        with open(self.file) as lines:
            return [json.loads(line)["body"] for line in lines if line.endswith("\n")]


class Foreign:
    def __init__(self, name):
        self.name = name
        words = [sys.executable, "-B", os.path.join(HERE, "foreign.py"), PATH, name]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL)


def leader_pid():
    """The process that leads at the path, and its roster; None where no process does."""
    try:
        wire = Wire(PATH)
        wire.socket.settimeout(1)
        pid = struct.unpack("3i", wire.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        wire.write('{"type":"list_peers"}\n')
        reply = wire.next()
        if reply is None:
            # A leader of 0.4.2 answers members only.
            wire = Wire(PATH)
            wire.socket.settimeout(1)
            wire.register("probe")
            return pid, wire.list()[1]
        return pid, reply["body"]["peers"]
    except (OSError, AssertionError):
        return None, []


def wait_for(what, condition, limit):
    begun = time.monotonic()
    while not condition():
        if time.monotonic() - begun > limit:
            raise SystemExit(f"not within {limit} s: {what}; the roster is {leader_pid()}")
        time.sleep(0.002)
    return time.monotonic() - begun


def in_one_roster(tails):
    names = {tail.name for tail in tails}
    return lambda: names <= set(leader_pid()[1])


def send(to, text):
    words = [YOI, "mesh", "send", "--name", "sender", to, text]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, stdin=subprocess.DEVNULL)


def expect_once(tail, texts):
    """Each acknowledged text was printed once."""
    arrived = lambda: set(texts) <= set(tail.texts())
    wait_for(f"{tail.name} prints {texts}", arrived, 10)
    printed = tail.texts()
    doubled = [text for text in texts if printed.count(text) > 1]
    if doubled:
        raise SystemExit(f"{tail.name} printed {doubled} more than once")


def main():
    os.makedirs(DIR, exist_ok=True)
    tails = [Tail(f"ours{number}", 0) for number in range(OURS)]
    wait_for("yoi leads", lambda: leader_pid()[0] is not None, 20)
    others = [Foreign(f"other{number}") for number in range(OTHERS)]
    everyone = {member.name for member in [*tails, *others]}
    wait_for("all have joined", lambda: everyone <= set(leader_pid()[1]), 20)
    times, acknowledged, kinds = [], 0, {"ours": 0, "other": 0}
    try:
        for turn in range(1, COUNT + 1):
            pid, _ = leader_pid()
            member = next((one for one in [*tails, *others] if one.process.pid == pid), None)
            if member is None:
                raise SystemExit(f"process {pid} leads and is none of the members")
            # Also the one that is killed: what it confirmed, it had printed.
            receiver = random.choice(tails)
            texts = [f"{turn}.{number}" for number in range(8)]
            sending = [(text, send(receiver.name, text)) for text in texts]
            member.process.send_signal(signal.SIGKILL)
            member.process.wait()
            kinds[member.name.rstrip("0123456789")] += 1
            left = [tail for tail in tails if tail is not member]
            times.append(wait_for("the members of yoi are in one roster", in_one_roster(left), 2))
            received = [text for text, process in sending if process.communicate()[0].startswith("received")]
            acknowledged += len(received)
            expect_once(receiver, received)
            if member in tails:
                tails[tails.index(member)] = Tail(member.name, turn)
            else:
                others[others.index(member)] = Foreign(member.name)
            wait_for("all of yoi are there again", in_one_roster(tails), 10)
    finally:
        for member in [*tails, *others]:
            member.process.kill()
    median = statistics.median(times) * 1000
    print(json.dumps({"kills": COUNT, "leaders": kinds, "median_ms": round(median), "max_ms": round(max(times) * 1000),
                      "acknowledged": acknowledged}))


if __name__ == "__main__":
    main()
