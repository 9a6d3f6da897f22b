"""A connection that writes and reads lines of the mesh, and nothing else."""
import json
import os
import socket
import time

HEX = "0123456789abcdefABCDEF"


def new_id():
    """A UUID of version 7."""
    number = int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")
    number = number & ~(0xF << 76) & ~(3 << 62) | 7 << 76 | 2 << 62
    digits = f"{number:032x}"
    return "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])


def is_id(text):
    parts = text.split("-") if isinstance(text, str) else []
    return [len(part) for part in parts] == [8, 4, 4, 4, 12] and all(c in HEX for part in parts for c in part)


class Wire:
    """One connection. Reads wait 20 s at most."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(path)
        self.rest = b""
        self.name = None

    def write(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def line(self):
        """The next line as bytes without its newline, or None at the end."""
        while b"\n" not in self.rest:
            try:
                piece = self.socket.recv(65536)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return None
            self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def next(self):
        line = self.line()
        return None if line is None else json.loads(line)

    def register(self, name):
        self.write(json.dumps({"type": "register", "name": name}) + "\n")
        ack = self.next()
        assert ack and ack["type"] == "register_ack", ack
        self.name = ack["name_assigned"]
        return self

    def send(self, to, body, re=None, sender="x"):
        """Writes an envelope and returns its id."""
        id = new_id()
        self.write(json.dumps({"from": sender, "to": to, "id": id, "re": re, "body": body}) + "\n")
        return id

    def until(self, id):
        """The lines before the answer to a request to the leader, and that answer."""
        lines = []
        while True:
            line = self.next()
            assert line is not None, "the connection was closed"
            if line["from"] == "broker" and line["re"] == id:
                return lines, line
            lines.append(line)

    def list(self):
        """The lines that came before the roster, and the roster."""
        lines, reply = self.until(self.send("broker", {"type": "list_peers"}))
        return lines, reply["body"]["peers"]

    def seen(self):
        """What came so far, without what says who comes and goes."""
        presence = ("peer_joined", "peer_left")
        kind = lambda line: isinstance(line["body"], dict) and line["body"].get("type")
        return [line for line in self.list()[0] if kind(line) not in presence]

    def close(self):
        self.socket.close()
