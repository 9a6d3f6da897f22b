"""Kills `yoi mcp` again and again while agents send to it: `kills.py YOI HOME COUNT`. An oracle notes what was
acknowledged and what the client was given. Prints the figures; fails where a promise is broken."""
import json
import os
import random
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "mesh"))
from client import Client, Gone
from wire import Wire

YOI, HOME, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
SOCKET = os.path.join(HOME, "run/.mesh/sock")
PROJECT = os.path.join(HOME, "project")
SENDERS, FLIGHT = 3, 16


class Sender(threading.Thread):
    """An agent that sends numbers, so many in flight, and notes which were acknowledged."""

    def __init__(self, name):
        super().__init__(daemon=True)
        self.wire, self.ending = Wire(SOCKET), threading.Event()
        # To members of yoi the leader says at once that an agent is not there.
        self.wire.write(json.dumps({"type": "register", "name": name, "yoi": {"version": 1}}) + "\n")
        self.wire.name = self.wire.next()["name_assigned"]
        self.sent, self.received, self.others = {}, set(), {}

    def run(self):
        waiting = set()
        while not self.ending.is_set() or waiting:
            while len(waiting) < FLIGHT and not self.ending.is_set():
                number = len(self.sent)
                id = self.wire.send("project", [self.wire.name, number, "x" * random.randrange(200)])
                self.sent[id] = number
                waiting.add(id)
            line = self.wire.next()
            if line["from"] == "broker" and line["re"] in waiting:
                waiting.remove(line["re"])
                status = line["body"]["status"]
                self.others[status] = self.others.get(status, 0) + 1
                if status == "received":
                    self.received.add(line["re"])
                else:
                    # The agent is not there.
                    time.sleep(0.002)


class Oracle:
    """What the client was given."""

    def __init__(self):
        self.order, self.bodies, self.taken, self.batch, self.repeats = [], {}, set(), [], 0

    def given(self, messages):
        """A batch in answer to a call that was written after the last batch was read."""
        self.taken.update(self.batch)
        self.note(messages)

    def given_anew(self, messages):
        """The first batch of a new process."""
        self.note(messages)

    def note(self, messages):
        for message in messages:
            id = message["id"]
            assert id not in self.taken, f"{id} was taken and came again"
            if id in self.bodies:
                assert self.bodies[id] == message["body"] and message["again"], f"{id} came again as another message"
                self.repeats += 1
            else:
                self.bodies[id] = message["body"]
                self.order.append(id)
        self.batch = [message["id"] for message in messages]

    def check(self, senders):
        received = set().union(*(sender.received for sender in senders))
        lost = received - set(self.bodies)
        assert not lost, f"{len(lost)} of {len(received)} acknowledged messages are lost"
        for sender in senders:
            numbers = [sender.sent[id] for id in self.order if id in sender.sent]
            assert numbers == sorted(numbers), f"the messages of {sender.wire.name} are out of order"
        return received


def main():
    os.makedirs(PROJECT, exist_ok=True)
    words = [YOI, "mesh", "tail", "--name", "leader"]
    leader = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 20
    while not os.path.exists(SOCKET):
        assert time.monotonic() < until, "no process leads"
        time.sleep(0.01)
    senders = [Sender(f"s{number}") for number in range(SENDERS)]
    for sender in senders:
        sender.start()
    oracle = Oracle()
    for _ in range(COUNT):
        one_life(oracle)
    for sender in senders:
        sender.ending.set()
    for sender in senders:
        sender.join(20)
        assert not sender.is_alive(), "a message was never answered"
    last = Client(YOI, PROJECT)
    last.until_joined()
    oracle.given_anew(last.messages())
    while oracle.batch:
        oracle.given(last.messages())
    received = oracle.check(senders)
    assert last.end()[0] == 0
    leader.kill()
    sent = sum(len(sender.sent) for sender in senders)
    statuses = [sender.others for sender in senders]
    figures = {"kills": COUNT, "sent": sent, "received": len(received), "given": len(oracle.order)}
    print(json.dumps({**figures, "repeats": oracle.repeats, "statuses": statuses}))
    assert len(received) > 10 * COUNT, "there was no load"


def one_life(oracle):
    """A server from its start to its death at any moment."""
    try:
        client, take = Client(YOI, PROJECT, lifetime=random.uniform(0.05, 0.4)), oracle.given_anew
        while True:
            _, got, failed = client.call("get_messages")
            if not failed:
                take(got["messages"])
                take = oracle.given
    except Gone:
        pass


main()
