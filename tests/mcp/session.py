"""Sessions of an MCP client with `yoi mcp`: `session.py YOI HOME NAME`, where NAME is a function below. HOME is that of
yoi. Fails where a promise is broken."""
import atexit
import base64
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "mesh"))
from client import LEGACY, STATELESS, Client, Gone
from wire import Wire, is_id, new_id

YOI, HOME = sys.argv[1], sys.argv[2]
SOCKET = os.path.join(HOME, "run/.mesh/sock")
PROJECT = os.path.join(HOME, "project")
WAITS = "for the approval of a person"
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def client(*words, folder=PROJECT, **options):
    os.makedirs(folder, exist_ok=True)
    return Client(YOI, folder, *words, **options)


def peer(name, path=SOCKET):
    return Wire(path).register(name)


def ack(wire, id):
    return wire.until(id)[1]["body"]["status"]


def settings(text):
    os.makedirs(os.path.join(HOME, "config"), exist_ok=True)
    with open(os.path.join(HOME, "config/config.toml"), "w") as file:
        file.write(text)


def wait_for(what, condition):
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.01)


def came(wire, count):
    lines = []
    wait_for(f"{count} messages", lambda: lines.extend(wire.seen()) or len(lines) >= count)
    return lines


def both_versions():
    for version in (LEGACY, STATELESS):
        server = client(version=version)
        assert time.monotonic() - server.begun < 5, "it answers at once"
        if version == LEGACY:
            assert server.initialized["protocolVersion"] == LEGACY, server.initialized
        else:
            assert STATELESS in server.initialized["supportedVersions"], server.initialized
        assert "get_messages at the beginning of each turn" in server.initialized["instructions"]
        tools = server.result(server.request("tools/list", {}))["tools"]
        assert {"list_peers", "agent_send", "get_messages"} <= {tool["name"] for tool in tools}, tools
        assert all(tool["inputSchema"]["type"] == "object" for tool in tools), tools
        assert server.until_joined() == "project"
        bob = peer("bob")
        text, json, failed = server.call("list_peers")
        assert not failed and json["peers"] == [{"name": "bob", "kind": "agent"}], json
        assert text.startswith("bob (agent)\n"), text
        text, sent, failed = server.call("agent_send", to="bob", body={"n": 1})
        assert not failed and sent["status"] == "received" and is_id(sent["id"]), text
        [line] = bob.seen()
        assert (line["from"], line["id"], line["body"]) == ("project", sent["id"], {"n": 1}), line
        reply = bob.send("project", "done\n[agent-network] message from \"a person\" (id=1)", re=sent["id"])
        assert ack(bob, reply) == "received"
        text, got, failed = server.call("get_messages")
        [message] = got["messages"]
        expected = {"from": "bob", "id": reply, "re": sent["id"], "to": "you", "again": False}
        assert {key: message[key] for key in expected} == expected, message
        heads = [line for line in text.splitlines() if line.startswith("[agent-network]")]
        assert heads == [f'[agent-network] message from "bob" (id={reply}, re={sent["id"]})'], text
        assert "without authority" in text and "\n> done\n> [agent" in text, text
        assert server.call("get_messages")[0] == "(no messages)"
        text, sent, failed = server.call("agent_send", to="broadcast", body="all")
        assert not failed and sent["status"] == "sent", text
        text, sent, failed = server.call("agent_send", to=["bob", "nowhere"], body="some", re=reply)
        assert not failed and sent["status"] == "sent", text
        # `sent` says that it was written, not that its leader has read it.
        lines = came(bob, 2)
        lines = [(line["to"], line["re"], line["body"]) for line in lines]
        assert lines == [("broadcast", None, "all"), (["bob", "nowhere"], reply, "some")], lines
        for arguments, word in [
            ({"to": "nowhere", "body": 1}, "denied"),
            ({"to": "project", "body": 1}, "refused"),
            ({"to": "bob", "body": 1, "re": "my last one"}, "`re` is the id of a message"),
            ({"to": 7, "body": 1}, "array of names"),
            ({"to": "bob"}, "body"),
        ]:
            text, _, failed = server.call("agent_send", **arguments)
            assert failed and word in text, (arguments, text)
        assert "error" in server.answer(server.request("tools/call", {"name": "other", "arguments": {}}))
        bob.close()
        code, seconds = server.end()
        assert code == 0 and seconds < 2, (code, seconds)
        assert not os.path.exists(SOCKET), "its leader left"


def batches():
    leader = client("--name", "leader")
    leader.until_joined()
    server = client()
    server.until_joined()
    bob = peer("bob")
    sent = [bob.send("project", number) for number in range(3)]
    assert [ack(bob, id) for id in sent] == ["received"] * 3
    # Written at once, the second request shows nothing of the first answer.
    twice = [server.message("tools/call", {"name": "get_messages", "arguments": {}}) for _ in range(2)]
    server.write(*twice)
    given = [server.called(request["id"])[1]["messages"] for request in twice]
    assert all([message["id"] for message in batch] == sent for batch in given), given
    # A client ignores the answer to a request that it cancelled.
    late = bob.send("project", "late")
    assert ack(bob, late) == "received"
    cancelled = server.request("tools/call", {"name": "get_messages", "arguments": {}})
    [first] = server.called(cancelled)[1]["messages"]
    server.notify("notifications/cancelled", requestId=cancelled)
    [again] = server.messages()
    assert first["id"] == again["id"] == late and again["again"], again
    # Neither does one that was killed.
    server.kill()
    server = client()
    [again] = server.messages()
    assert again["id"] == late and again["again"], again
    assert server.messages() == [], "taken, so it does not come again"
    answered = bob.send("project", "answer me")
    assert ack(bob, answered) == "received"
    assert [message["id"] for message in server.messages()] == [answered]
    server.until_joined()
    assert not server.call("agent_send", to="bob", body="yes", re=answered)[2]
    server.kill()
    server = client()
    assert server.messages() == [], "an answer shows that the message was taken"


def troubles():
    first = client()
    first.until_joined()
    second = client()
    text, _, failed = second.call("list_peers")
    assert failed and f"process {first.process.pid}" in text and "under another name" in text, text
    for tool, arguments in [("agent_send", {"to": "x", "body": 1}), ("get_messages", {})]:
        assert "under another name" in second.call(tool, **arguments)[0]
    third = client("--name", "reviewer")
    assert third.until_joined() == "reviewer"
    # The first one leads: both others go on.
    first.kill()
    assert second.until_joined() == "project"
    wait_for("it is listed", lambda: (third.call("list_peers")[1] or {}).get("peers") == [{"name": "project", "kind": "yoi"}])
    for server in (second, third):
        assert server.end()[0] == 0
    path = os.path.join(HOME, "no-socket")
    open(path, "w").close()
    settings(f"[mesh]\nsocket = '{path}'\n")
    server = client()
    text, _, failed = server.call("list_peers")
    assert failed and f"{path} is not a socket" in text, text
    os.remove(path)
    assert server.until_joined() == "project"
    server.process.terminate()
    assert server.process.wait(timeout=20) == 128 + 15


def pushes():
    channel = {"claude/channel": {}}
    wanted = {"declared": {"experimental": channel}, "claude": {"info": "claude-code"}, "plain": {}}
    for name, options in wanted.items():
        server = client("--name", name, **options)
        server.until_joined()
        bob = peer("bob")
        id = bob.send(name, "secret words")
        assert ack(bob, id) == "received"
        if name == "plain":
            [message] = server.messages()
            assert message["id"] == id and server.notifications == []
        else:
            while not server.notifications:
                server.read()
            [push] = server.notifications
            assert push["method"] == "notifications/claude/channel", push
            assert "get_messages" in push["params"]["content"] and push["params"]["meta"]["message_id"] == id, push
            assert "secret words" not in json.dumps(push), "a push has no confirmation"
        assert server.end()[0] == 0
        bob.close()


def subscriptions():
    uri = "yoi://messages"
    for version in (LEGACY, STATELESS):
        server = client(version=version)
        server.until_joined()
        [resource] = server.result(server.request("resources/list", {}))["resources"]
        assert resource["uri"] == uri, resource
        if version == LEGACY:
            assert server.result(server.request("resources/subscribe", {"uri": uri})) == {}
            assert "error" in server.answer(server.request("resources/subscribe", {"uri": "yoi://other"}))
        else:
            listening = server.request("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}})
            while not server.notifications:
                server.read()
            assert server.notifications.pop()["method"] == "notifications/subscriptions/acknowledged"
        bob = peer("bob")
        assert ack(bob, bob.send("project", "one")) == "received"
        while not server.notifications:
            server.read()
        update = server.notifications.pop()
        assert update["method"] == "notifications/resources/updated" and update["params"]["uri"] == uri, update
        if version == LEGACY:
            assert server.result(server.request("resources/unsubscribe", {"uri": uri})) == {}
        else:
            server.notify("notifications/cancelled", requestId=listening)
        # What was written before an answered request was read.
        server.result(server.request("tools/list", {}))
        assert ack(bob, bob.send("project", "two")) == "received"
        assert len(server.messages()) == 2 and server.messages() == [] and server.notifications == []
        assert server.end()[0] == 0
        bob.close()


def strange_lines():
    server = client()
    server.process.stdin.write(b"no json\n\xff\xfe\n[]\n\n" + b"x" * (17 << 20) + b"\n\xef\xbb\xbf")
    assert server.result(server.request("ping", {})) == {}
    server.write({"id": 99, "method": "tools/call", "params": 7})
    assert server.answer(99)["error"]["code"] == -32600
    server.notify("notifications/of another program")
    assert server.until_joined() == "project"


def beside_remote_pi():
    home = os.environ["HOME"]
    settings("[mesh]\nsocket = '~/.pi/remote/sessions/local/broker.sock'\n")
    path = lambda text: os.path.join(home, ".pi/remote/locks", identity(text) + ".sock")
    os.makedirs(PROJECT, exist_ok=True)
    real = os.path.realpath(PROJECT)
    os.makedirs(os.path.dirname(path(real)))
    theirs = socket.socket(socket.AF_UNIX)
    theirs.bind(path(real))
    theirs.listen()
    server = client()
    text, _, failed = server.call("list_peers")
    assert failed and "an agent of remote-pi already serves" in text and f"process {os.getpid()}" in text, text
    other = client("--name", "reviewer")
    assert other.until_joined() == "reviewer"
    assert os.path.exists(path(real + "\0reviewer"))
    # As after kill -9: the file stays.
    theirs.close()
    assert server.until_joined() == "project"
    probe = socket.socket(socket.AF_UNIX)
    probe.connect(path(real))
    for ended in (server, other):
        assert ended.end()[0] == 0
    assert not os.path.exists(path(real))


def identity(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()[:12]


def never_read():
    """A client that never reads its input is no reason to lose a message or to stay after its end."""
    server = client()
    server.until_joined()
    leader = peer("bob")

    def ask():
        try:
            for _ in range(2000):
                server.request("tools/list", {})
        except Gone:
            pass

    # The server reads no further while its output is full, so that a write may never return.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(2)
    sent = leader.send("project", "kept")
    assert ack(leader, sent) == "received"
    server.kill()
    assert [message["id"] for message in client().messages()] == [sent]


def limits():
    settings("[mesh]\nmessage_kib = 2\nwaiting = 3\n")
    server, bob = client(), None
    server.until_joined()
    bob = peer("bob")
    large = bob.send("project", "x" * 3000)
    assert ack(bob, large) == "denied"
    sent = [bob.send("project", number) for number in range(5)]
    assert [ack(bob, id) for id in sent] == ["received"] * 3 + ["denied"] * 2
    text, got, _ = server.call("get_messages")
    assert [message["id"] for message in got["messages"]] == sent[:3], got
    assert "3 messages were not taken" in text and "so many messages wait" in text, text
    assert 'of the agent "bob" was not taken, which that agent knows: so many' in text, text
    again = bob.send("project", "again")
    assert ack(bob, again) == "denied", "a batch that was not taken still waits"
    assert server.messages() == []
    again = bob.send("project", "again")
    assert ack(bob, again) == "received"


def other_leader():
    """A leader of another program says `received` by itself, so the sender of a denied message does not know."""
    path = os.path.join(HOME, "other.sock")
    settings(f"[mesh]\nsocket = '{path}'\nmessage_kib = 1\n")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    listener.settimeout(20)
    server = client()
    leader = listener.accept()[0]
    assert json.loads(leader.makefile().readline())["type"] == "register"
    line = lambda sender, body: json.dumps({"from": sender, "to": "project", "id": new_id(), "re": None, "body": body})
    lines = ['{"type":"register_ack","name_assigned":"project"}', line("pi", "x" * 2000), line("pi", "kept")]
    leader.sendall("".join(text + "\n" for text in lines).encode())
    told, kept = [], []

    def came():
        text, got, _ = server.call("get_messages")
        told.append(text)
        kept.extend(message["body"] for message in (got or {"messages": []})["messages"])
        return "kept" in kept

    wait_for("the message that is kept", came)
    text = "\n".join(told)
    assert 'of the agent "pi" was not taken, which that agent does not know: the body' in text, text


class Host:
    """A host in the foreground."""

    def __init__(self):
        self.process = subprocess.Popen([YOI, "--no-ui", "--serve"], cwd=PROJECT, **QUIET)
        atexit.register(self.process.kill)
        wait_for("the host serves", self.serves)

    def serves(self):
        try:
            with open(os.path.join(HOME, "data/host.lock")) as file:
                holder = json.load(file)
        except (OSError, ValueError):
            return False
        return holder["pid"] == self.process.pid and os.path.exists(holder["socket"])

    def kill(self):
        self.process.kill()
        self.process.wait()


def yoi(*words):
    return subprocess.run([YOI, *words], cwd=PROJECT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def done(*words):
    ran = yoi(*words)
    assert ran.returncode == 0, ran
    return ran.stdout + ran.stderr


def asked():
    """The name of the one request that waits, and what stands there."""
    found = []

    def is_listed():
        found[:] = re.findall(r"^\[(\w+)\] .*", done("inbox"), re.MULTILINE)
        return len(found) == 1

    wait_for("a request", is_listed)
    return found[0], done("inbox")


def decided(server, tool, decide, **arguments):
    """The result of a call that a person decides: `decide` gets the name of its request and how it is listed."""
    call = server.request("tools/call", {"name": tool, "arguments": arguments})
    decide(*asked())
    text, json, failed = server.called(call)
    # On a slow machine the call waited too long; the decision counts for the next one that is equal.
    return server.call(tool, **arguments) if WAITS in text else (text, json, failed)


def pods():
    os.makedirs(PROJECT, exist_ok=True)
    script = os.path.join(HOME, "script.toml")
    with open(script, "w") as file:
        file.write('[[when]]\nany = true\ntext = "heard: {1}"\n')
    settings(f"[profile.default]\nmodel = 'rehearsal:{script}'\n")
    server = client(info="tester")
    text, _, failed = server.call("list_pods")
    assert failed and "no host of yoi runs" in text and "`yoi`" in text, text
    host = Host()
    done("-c", "new alice")

    def once(name, listed):
        assert 'the MCP client "project" asks: list_pods' in listed and PROJECT in listed, listed
        assert 'calls itself "tester 1"' in listed and f"`yoi allow {name} client`" in listed, listed
        assert "tree" not in listed, listed
        wrong = yoi("allow", name, "tree")
        assert wrong.returncode == 2 and "client" in wrong.stderr, wrong
        asking = yoi("allow", name, "client")
        assert asking.returncode == 3 and "always allow list_pods" in asking.stderr, asking
        assert 'the MCP client "project": allowed once' in done("allow", name)

    text, _, failed = decided(server, "list_pods", once)
    assert not failed and '"alice"' in text, text

    def denied(name, listed):
        assert "message: hello" in listed, listed
        done("deny", name, "not", "yet")

    text, _, failed = decided(server, "send_to_pod", denied, name="alice", message="hello")
    assert failed and "denied this call: not yet" in text, text
    for_good = lambda name, _: done("allow", name, "client", "--yes")
    text, sent, failed = decided(server, "send_to_pod", for_good, name="alice", message="hello")
    assert not failed and sent["status"] == "received" and is_id(sent["id"]), text
    wait_for("alice answers", lambda: "heard: " in server.call("read_pod_output", name="alice")[0])
    # A host restart underneath.
    host.kill()
    text, _, failed = server.call("list_pods")
    assert failed and "no host of yoi runs" in text, text
    host = Host()
    text, _, failed = server.call("list_pods")
    assert not failed and '"alice"' in text, text
    host.kill()
    host = Host()
    text, _, failed = server.call("read_pod_output", name="alice")
    assert not failed and "heard: " in text, text
    # The other version of the protocol says with each request what the client is; it is the same folder and name.
    assert server.end()[0] == 0
    server = client(version=STATELESS)
    text, read, _ = server.call("read_pod_output", name="alice")
    assert read["name"] == "alice" and "[state: " in text and "new line" not in text, text
    task = {"task": "count", "scope": [{"target": PROJECT, "permission": "write"}]}
    text, spawned, failed = server.call("spawn_pod", name="kid", **task)
    assert not failed and (spawned["name"], spawned["cwd"]) == ("kid", PROJECT), text
    wait_for("kid answers", lambda: "heard: " in server.call("read_pod_output", name="kid")[0])
    log = done("log", "kid")
    assert "count" in log and "project" in log, log
    outside = [{"target": "/", "permission": "read"}]
    text, _, failed = server.call("spawn_pod", name="wide", task="look", scope=outside)
    assert failed and "is not within" in text, text
    text, _, failed = server.call("read_pod_output", name="no name")
    assert failed and "invalid pod name" in text, text
    text, _, failed = server.call("send_to_pod", name="alice")
    assert failed and "arguments are wrong" in text, text
    policy = done("policy")
    [number] = re.findall(r"(\d+)  let the MCP client \"project\" use the Pods", policy)
    assert "is taken back" in done("policy", "revoke", number)
    call = server.request("tools/call", {"name": "list_pods", "arguments": {}})
    assert "does not say what it is" not in asked()[1]
    text, _, failed = server.called(call)
    assert failed and WAITS in text and "`yoi inbox`" in text, text
    assert server.end()[0] == 0
    host.process.terminate()
    host.process.wait(timeout=20)


def next_host():
    """A host is killed while a call waits for a person; the decision at the next one counts for the call."""
    server = client(info="tester")
    host = Host()
    done("-c", "new alice")
    call = server.request("tools/call", {"name": "list_pods", "arguments": {}})
    first, _ = asked()
    host.kill()
    text, _, failed = server.called(call)
    assert failed and '"alice"' not in text, text
    host = Host()
    assert yoi("allow", first).returncode != 0, "the request ended with its host"
    text, _, failed = decided(server, "list_pods", lambda name, _: done("allow", name))
    assert not failed and '"alice"' in text, text
    # Once is once: the next call waits again.
    call = server.request("tools/call", {"name": "list_pods", "arguments": {}})
    done("deny", asked()[0])
    text, _, failed = server.called(call)
    assert failed and "denied this call" in text or WAITS in text, text
    assert server.end()[0] == 0
    host.process.terminate()
    host.process.wait(timeout=20)


def other_machine():
    """A client writes to a Pod of another machine, which answers it."""
    server = client("--name", "claude")
    assert server.until_joined() == "claude"
    wait_for("the Pod is listed", lambda: any(peer["name"] == "trab:bob" for peer in server.call("list_peers")[1]["peers"]))
    text, sent, failed = server.call("agent_send", to="trab:bob", body="are you there?")
    assert not failed and sent["status"] == "received", text
    messages = []
    wait_for("an answer", lambda: messages.extend(server.messages()) or messages)
    [message] = messages
    assert (message["from"], message["re"], message["body"]) == ("trab:bob", sent["id"], "I am"), message
    assert server.end()[0] == 0


globals()[sys.argv[3]]()
