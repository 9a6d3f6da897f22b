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
before = []
ack = wire.next()
while ack["from"] != agent.split(":")[0] + ":broker":
    before.append(ack)
    ack = wire.next()
assert ack["re"] == id and ack["body"]["type"] == "ack", ack
print(json.dumps(ack["body"]), flush=True)
answer = next((line for line in before if line["from"] == agent), None)
while answer is None:
    line = wire.next()
    answer = line if line["from"] == agent else None
print(json.dumps([answer["body"], answer["re"] == id]), flush=True)
