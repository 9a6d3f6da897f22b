"""A member as remote-pi 0.4.2 has it, which writes to an agent of another machine and waits for its answer.
`reaches.py SOCKET NAME AGENT` prints what became of its message, and what it is answered."""
import json
import sys
import time

from wire import Wire

path, name, agent = sys.argv[1:]
wire = Wire(path).register(name)
while agent not in wire.list()[1]:
    time.sleep(0.05)
id = wire.send(agent, "are you there?")
lines = []


def first(fits):
    """The first line that fits, whatever comes before it."""
    while not any(map(fits, lines)):
        lines.append(wire.next())
    return next(filter(fits, lines))


# The client of 0.4.2 takes no other line for an acknowledgement.
ack = first(lambda line: line["re"] == id and (line["from"] == "broker" or line["from"].endswith(":broker")))
assert ack["body"]["type"] == "ack", ack
print(json.dumps(ack["body"]), flush=True)
answer = first(lambda line: line["from"] == agent)
print(json.dumps([answer["body"], answer["re"] == id]), flush=True)
