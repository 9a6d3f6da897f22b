"""A leader as remote-pi 0.4.2 has it, on one socket. As a program it prints a line when it listens, and one for each
line of a member: what the member sent, as JSON, with the name it has."""
import json
import os
import selectors
import socket
import sys

from wire import is_id, new_id


def is_envelope(value):
    if not isinstance(value, dict) or any(key not in value for key in ("from", "to", "id", "re", "body")):
        return False
    names = value["to"] if isinstance(value["to"], list) else [value["to"]]
    texts = [value["from"], *names]
    is_text = all(isinstance(text, str) and text for text in texts)
    return is_text and bool(names) and is_id(value["id"]) and (value["re"] is None or is_id(value["re"]))


class Leader:
    """`seen` is called with the name and the value of each line of a member."""

    def __init__(self, listener, seen=lambda name, value: None):
        self.selector = selectors.DefaultSelector()
        self.listener = listener
        self.seen = seen
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.buffers = {}
        self.members = {}

    def name_of(self, connection):
        return next((name for name, other in self.members.items() if other is connection), None)

    def write(self, connection, value):
        try:
            self.put(connection, value)
        except OSError:
            # The end of the stream is read later.
            pass

    def put(self, connection, value):
        connection.sendall(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")

    def tell(self, name, body, re=None):
        envelope = {"from": "broker", "to": name, "id": new_id(), "re": re, "body": body}
        self.write(self.members[name], envelope)

    def tell_others(self, name, kind):
        for other in self.members:
            if other != name:
                self.tell(other, {"type": kind, "name": name})

    def close(self, connection):
        self.selector.unregister(connection)
        del self.buffers[connection]
        name = self.name_of(connection)
        connection.close()
        if name is not None:
            del self.members[name]
            self.tell_others(name, "peer_left")

    def line(self, connection, line):
        name = self.name_of(connection)
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if name is None:
            return self.register(connection, value)
        self.seen(name, value)
        if is_envelope(value):
            self.route(name, value)

    def register(self, connection, value):
        if not isinstance(value, dict) or value.get("type") != "register" or not isinstance(value.get("name"), str):
            return self.close(connection)
        wanted, number = value["name"], 2
        name = wanted
        while name in self.members:
            name, number = f"{wanted}#{number}", number + 1
        self.members[name] = connection
        self.write(connection, {"type": "register_ack", "name_assigned": name})
        self.tell_others(name, "peer_joined")

    def route(self, name, value):
        to, body = value["to"], value["body"]
        line = {"from": name, "to": to, "id": value["id"], "re": value["re"], "body": body}
        if to == "broker":
            if isinstance(body, dict) and body.get("type") == "list_peers":
                self.tell(name, {"type": "list_peers_reply", "peers": list(self.members)}, re=value["id"])
        elif to == "broadcast" or isinstance(to, list):
            targets = self.members if to == "broadcast" else [one for one in to if one in self.members]
            for target in list(targets):
                if target != name:
                    self.write(self.members[target], line)
        elif to in self.members and to != name:
            self.write(self.members[to], line)
            self.tell(name, {"type": "ack", "status": "received", "target": to}, re=value["id"])

    def run(self):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.listener:
                    connection, _ = self.listener.accept()
                    self.buffers[connection] = b""
                    self.selector.register(connection, selectors.EVENT_READ)
                elif key.fileobj in self.buffers:
                    self.read(key.fileobj)

    def read(self, connection):
        try:
            piece = connection.recv(65536)
        except ConnectionResetError:
            piece = b""
        if not piece:
            return self.close(connection)
        *lines, self.buffers[connection] = (self.buffers[connection] + piece).split(b"\n")
        for line in lines:
            if line and connection in self.buffers:
                self.line(connection, line)


def listen(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(128)
    return listener


def main(path):
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    leader = Leader(listen(path), lambda name, value: print(json.dumps({"name": name, "line": value}), flush=True))
    print(json.dumps({"listens": path}), flush=True)
    leader.run()


if __name__ == "__main__":
    main(sys.argv[1])
