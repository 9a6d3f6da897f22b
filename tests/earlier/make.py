#!/usr/bin/env python3
"""Makes the data directory of this folder with an earlier release: make.py <yoi> <output directory>.

Everything below <output>/home was written by that program, which is killed with KILL at the end. The paths begin with
BASE, so that a test can put a directory of the same length in its place."""
import atexit, http.server, json, os, shutil, signal, sqlite3, subprocess, sys, threading, time

YOI, OUT = sys.argv[1], sys.argv[2]
BASE = "/tmp/yoi-000000"
PORT = 18431

SCRIPT = '''
[[when]]
says = "hang*"
[[when.step]]
text = "I begin with this sentence and then nothing more comes."
fault = { hang = 30 }

[[when]]
says = "run *"
[[when.step]]
call = [{ name = "Bash", args = { command = "{1}" } }]
[[when.step]]
text = "It said: {result}"

[[when]]
says = "net *"
[[when.step]]
call = [{ name = "Bash", args = { command = "{1}", needs = ["network"], reason = "to fetch" } }]
[[when.step]]
text = "It said: {result}"

[[when]]
any = true
text = "heard: {1}"
'''


class Provider(http.server.BaseHTTPRequestHandler):
    """Chat: two replies with calls of the same id, then text. Anthropic: text."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if "chat" in self.path:
            results = sum(m["role"] == "tool" for m in body["messages"])
            if results < 2:
                call = {"index": 0, "id": "call_0", "type": "function", "function": {"name": "Glob", "arguments": json.dumps({"pattern": f"*{results}"})}}
                deltas = [({"tool_calls": [call]}, None), ({}, "tool_calls")]
            else:
                deltas = [({"content": "Both calls had one id."}, None), ({}, "stop")]
            for delta, finish in deltas:
                self.event({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
            self.wfile.write(b"data: [DONE]\n\n")
        else:
            self.event({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}})
            self.event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
            self.event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "An answer."}})
            self.event({"type": "content_block_stop", "index": 0})
            self.event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}})
            self.event({"type": "message_stop"})

    def event(self, value):
        kind = f"event: {value['type']}\n" if "type" in value else ""
        self.wfile.write(f"{kind}data: {json.dumps(value)}\n\n".encode())


def environment(**more):
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": f"{BASE}/home", "YOI_HOME": f"{BASE}/home", "LANG": "C.UTF-8", **more}


def yoi(*args, ws="ws", expect=0, **more):
    done = subprocess.run([YOI, *args], cwd=f"{BASE}/{ws}", env=environment(**more), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert expect is None or done.returncode == expect, (args, done)
    return done.stdout


def pods():
    return {p["name"]: p for p in map(json.loads, yoi("ls", "--all", "--json").splitlines())}


def until(name, state):
    for _ in range(600):
        if pods().get(name, {}).get("state") == state:
            return
        time.sleep(0.05)
    raise SystemExit(f"{name} did not become {state}: {pods().get(name)}")


def new(name, model):
    os.makedirs(f"{BASE}/{name}", exist_ok=True)
    yoi("new", name, "--cwd", f"{BASE}/{name}", "--model", model)


def main():

    shutil.rmtree(BASE, ignore_errors=True)
    for name in ["home/config", "ws", "scripts"]:
        os.makedirs(f"{BASE}/{name}")
    open(f"{BASE}/home/script.toml", "w").write(SCRIPT)
    open(f"{BASE}/home/config/config.toml", "w").write(
        f"[provider.shed]\nwire = 'chat'\nbase_url = 'http://127.0.0.1:{PORT}'\ndefault_model = 'm'\n"
        "[provider.ollama]\nbase_url = 'http://127.0.0.1:9'\n[provider.lmstudio]\nbase_url = 'http://127.0.0.1:9'\n"
    )
    server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    rehearsal = f"rehearsal:{BASE}/home/script.toml"
    host = subprocess.Popen([YOI, "--no-ui", "--serve"], cwd=f"{BASE}/ws", env=environment())
    atexit.register(host.kill)
    for _ in range(200):
        if os.path.exists(f"{BASE}/home/data/host.lock") and subprocess.run([YOI, "ls"], env=environment(), cwd=BASE, capture_output=True).returncode == 0:
            break
        time.sleep(0.05)
    # Equal call ids.
    new("equal", "shed/m")
    yoi("send", "equal", "use one id twice")
    until("equal", "idle")
    # A rule with the hash of a script.
    new("scripts", rehearsal)
    open(f"{BASE}/scripts/x.sh", "w").write("#!/bin/sh\necho from the script\n")
    os.chmod(f"{BASE}/scripts/x.sh", 0o755)
    yoi("send", "scripts", "net ./x.sh")
    until("scripts", "needs_you")
    request = yoi("inbox").split("[")[1].split("]")[0]
    yoi("allow", request, "pod", "--yes")
    until("scripts", "idle")
    # A consent.
    yoi("--no-ui", "--keep", "--yes", "-p", "hello", ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=f"http://127.0.0.1:{PORT}")
    # Rewinds, one of them undone, and a compaction.
    new("history", rehearsal)
    for n in range(6):
        yoi("send", "history", f"message {n} " + "word " * 40)
        until("history", "idle")
    yoi("rewind", "5", "--pod", "history", "--yes")
    yoi("rewind", "--undo", "--pod", "history", "--yes")
    yoi("rewind", "5", "--pod", "history", "--yes")
    yoi("compact", "history")
    until("history", "idle")
    yoi("send", "history", "after the compaction")
    until("history", "idle")
    # A run that waits for an approval.
    new("waits", rehearsal)
    yoi("send", "waits", "net echo from the network")
    until("waits", "needs_you")
    # A run under way, with a queue and a message of the mesh.
    new("runs", rehearsal)
    yoi("-c", "mesh join runs")
    yoi("send", "runs", "hang on")
    until("runs", "running")
    yoi("send", "runs", "queued one")
    yoi("send", "runs", "queued two")
    yoi("mesh", "send", "runs", "a message of another program")
    time.sleep(0.5)  # what streams is written within 100 ms
    host.send_signal(signal.SIGKILL)
    host.wait()
    database = sqlite3.connect(f"{BASE}/home/data/yoi.db")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for table in ["pods", "mail", "policy", "consents", "asks", "mesh_choices"]:
        print(table, database.execute(f"SELECT count(*) FROM {table}").fetchone())
    print(database.execute("SELECT tool, pattern FROM policy").fetchall(), database.execute("SELECT pod, kind, payload, taken FROM mail").fetchall())
    database.close()
    shutil.rmtree(OUT, ignore_errors=True)
    shutil.copytree(BASE, OUT, ignore=shutil.ignore_patterns("run", "private", "state", "make.py"))
    shutil.rmtree(BASE)


main()
