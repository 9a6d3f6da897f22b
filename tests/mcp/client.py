"""A client of MCP over standard input and output, written from the specification of the protocol alone. Every line of
the server must be a message of JSON-RPC."""
import json
import os
import select
import subprocess
import threading
import time

LEGACY, STATELESS = "2025-11-25", "2026-07-28"
PREFIX = "io.modelcontextprotocol/"


class Gone(Exception):
    """The server closed its output."""


class Client:
    """One server process, killed after its lifetime in seconds. Reads wait 20 s at most."""

    def __init__(self, yoi, cwd, *words, version=LEGACY, info="test", experimental=None, lifetime=None):
        self.version, self.next_id, self.rest = version, 0, b""
        self.capabilities = {"experimental": experimental} if experimental else {}
        self.info = {"name": info, "version": "1"}
        self.notifications, self.results = [], {}
        words = [yoi, "mcp", *words]
        self.begun = time.monotonic()
        self.process = subprocess.Popen(words, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if lifetime is not None:
            threading.Timer(lifetime, self.process.kill).start()
        if version == LEGACY:
            params = {"protocolVersion": version, "capabilities": self.capabilities, "clientInfo": self.info}
            self.initialized = self.result(self.request("initialize", params))
            self.notify("notifications/initialized")
        else:
            self.initialized = self.result(self.request("server/discover", {}))

    def write(self, *messages):
        text = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
        try:
            self.process.stdin.write(text.encode())
            self.process.stdin.flush()
        except OSError as error:
            raise Gone() from error

    def notify(self, method, **params):
        self.write({"method": method, "params": params})

    def message(self, method, params):
        """A request with a new id; of the stateless version each one says what the client is."""
        self.next_id += 1
        if self.version == STATELESS:
            own = {"protocolVersion": self.version, "clientInfo": self.info, "clientCapabilities": self.capabilities}
            params = {**params, "_meta": {PREFIX + key: value for key, value in own.items()}}
        return {"id": self.next_id, "method": method, "params": params}

    def request(self, method, params):
        message = self.message(method, params)
        self.write(message)
        return message["id"]

    def read(self):
        """Takes the next line."""
        until = time.monotonic() + 20
        while b"\n" not in self.rest:
            if not select.select([self.process.stdout], [], [], until - time.monotonic())[0]:
                raise AssertionError("the server did not answer within 20 s")
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                raise Gone()
            self.rest += piece
        line, self.rest = self.rest.split(b"\n", 1)
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0", line
        if "method" in message:
            assert "id" not in message, f"the server asked for something: {line}"
            self.notifications.append(message)
        else:
            self.results[message["id"]] = message

    def answer(self, id):
        while id not in self.results:
            self.read()
        return self.results.pop(id)

    def result(self, id):
        answer = self.answer(id)
        assert "result" in answer, answer
        return answer["result"]

    def call(self, tool, **arguments):
        return self.called(self.request("tools/call", {"name": tool, "arguments": arguments}))

    def called(self, id):
        """The text of a tool's result, the same as JSON, and whether it failed. Some clients give their model only the
        JSON, so it must say what the text says."""
        result = self.result(id)
        [content] = result["content"]
        text, json = content["text"], result.get("structuredContent")
        if json is not None and "messages" in json:
            said = [*json["notes"], *([json["more"]] if json["more"] else [])]
            said += [json["about"]] if json["messages"] else []
            assert all(part in text for part in said) and "without authority" in json["about"], (text, json)
            assert text.count("\n[agent-network]") == len(json["messages"]), (text, json)
        elif json is not None:
            assert json["text"] == text, (text, json)
        return text, json, result["isError"]

    def messages(self):
        text, json, failed = self.call("get_messages")
        assert not failed, text
        return json["messages"]

    def until_joined(self):
        """The name on the mesh, once the server is on it."""
        until = time.monotonic() + 20
        while True:
            text, json, failed = self.call("list_peers")
            if not failed:
                return json["you"]
            assert time.monotonic() < until, text
            time.sleep(0.02)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Closes the input, as a client does that ends; the exit code and the seconds until then."""
        begun = time.monotonic()
        self.process.stdin.close()
        code = self.process.wait(timeout=20)
        return code, time.monotonic() - begun
