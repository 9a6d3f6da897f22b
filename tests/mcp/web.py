"""A server of MCP over streamable HTTP, as good or as bad as its first argument says. Prints its port."""

import http.server
import json
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [
    {"name": "echo", "description": "Says a text again.", "inputSchema": SCHEMA},
    {"name": "header", "description": "The header Authorization.", "inputSchema": SCHEMA},
]


# Answers that a later stream carries, by the id of the last event, with the time at which the first stream ended.
waiting = {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if MODE != "retry" or self.headers["Last-Event-ID"] not in waiting:
            return self.reply(405)
        line, closed = waiting.pop(self.headers["Last-Event-ID"])
        answer = json.loads(line)
        paused = f"asked again after {int((time.monotonic() - closed) * 1000)} ms"
        answer["result"]["content"] = [{"type": "text", "text": paused}]
        self.events(f"id: last\ndata: {json.dumps(answer)}\n\n")

    def events(self, text):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text.encode())
        self.close_connection = True

    def do_DELETE(self):
        self.reply(200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if MODE == "oauth":
            return self.reply(401, WWW_Authenticate='Bearer resource_metadata="http://x/y"')
        if MODE == "moved":
            return self.reply(307, Location="http://127.0.0.1:9/mcp")
        message = json.loads(body)
        if "id" not in message:
            return self.reply(202)
        result = self.answer(message)
        line = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        if message["method"] != "tools/call":
            return self.reply(200, line.encode(), Content_Type="application/json", Mcp_Session_Id="s1")
        if MODE == "huge-body":
            line = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"content": "x" * (3 << 20)}})
            return self.reply(200, line.encode(), Content_Type="application/json")
        if MODE == "retry":
            # The stream ends without the answer, which waits for the client to come back.
            self.events("id: e1\nretry: 300\ndata:\n\n")
            waiting["e1"] = (line, time.monotonic())
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        if MODE == "hangs":
            time.sleep(3600)
        while MODE == "floods":
            note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            self.wfile.write(f"data: {json.dumps(note)}\n\n".encode())
        while MODE == "huge":
            self.wfile.write(b"data: " + b"x" * 65536)
        self.wfile.write(f"event: message\ndata: {line}\n\n".encode())
        self.close_connection = True

    def answer(self, message):
        if message["method"] == "initialize":
            info = {"name": "web", "version": "1"}
            version = message["params"]["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        if message["method"] == "tools/list":
            return {"tools": TOOLS}
        args = message["params"].get("arguments") or {}
        text = args.get("text", "") if message["params"]["name"] == "echo" else self.headers["Authorization"]
        return {"content": [{"type": "text", "text": text}]}


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
