#!/usr/bin/env python3
"""A classic client of the Pod protocol. It replays the recorded scenes against other Pods' sockets
and compares what it hears with what was recorded, event by event.

Every difference must stand in the list of intended differences, and every intended difference must
show. Written from the description of the protocol alone: JSON lines over a Unix stream socket, one
snapshot at connect, methods {"method", "params"}, events {"event", "data"}, no ids, no hello.

    replay.py --vectors FILE --differences FILE --socket alpha=PATH --socket beta=PATH
              [--map RECORDED=ACTUAL ...] [--show]
"""

import argparse
import difflib
import fnmatch
import json
import re
import socket
import sys
import time

# How long the next expected event may take, in seconds.
PATIENCE = 6
# How long an event that nobody expects is waited for at the end of a step, in seconds.
SILENCE = 0.3

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Client:
    """A connection: lines in, lines out."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.buffer = b""
        self.closed = False

    def send(self, line):
        self.socket.sendall(line.encode() + b"\n")

    def receive(self, patience):
        """The next event; None when none comes in time or the Pod closed the connection."""
        deadline = time.monotonic() + patience
        while True:
            line, newline, rest = self.buffer.partition(b"\n")
            if newline:
                self.buffer = rest
                if line.strip():
                    return json.loads(line)
                continue
            left = deadline - time.monotonic()
            if left <= 0 or self.closed:
                return None
            self.socket.settimeout(left)
            try:
                piece = self.socket.recv(65536)
            except socket.timeout:
                return None
            self.closed = not piece
            self.buffer += piece

    def close(self):
        self.socket.close()


def scenes(path):
    """The recording as scenes: name, pod, and steps of (line to send or None, events heard)."""
    found = []
    for text in open(path, encoding="utf-8"):
        record = json.loads(text)
        if "scene" in record:
            found.append((record["scene"], record["pod"], [(None, [])]))
        elif "client" in record:
            found[-1][2].append((record["client"], []))
        else:
            found[-1][2][-1][1].append(json.loads(record["pod"]))
    return found


class Normal:
    """Takes out of an event what may differ between two runs of the same thing."""

    def __init__(self, maps):
        self.maps = [pair.split("=", 1) for pair in maps]

    def to_send(self, line, targets):
        """The line as it is sent: with our paths, and with the rewind target that was offered in
        the place of the recorded one."""
        for recorded, actual in self.maps:
            line = line.replace(recorded, actual)
        if not targets or '"rewind_to"' not in line:
            return line
        recorded, heard = targets
        order = json.loads(line)
        wanted = order["params"]["target"]
        place = [target["id"] for target in recorded["targets"]].index(wanted)
        order["params"]["target"] = heard["targets"][place]["id"]
        if order["params"]["expected_head_entries"] == recorded["head_entries"]:
            order["params"]["expected_head_entries"] = heard["head_entries"]
        return json.dumps(order)

    def event(self, event):
        text = json.dumps(event, sort_keys=True)
        for recorded, actual in self.maps:
            text = text.replace(actual, recorded)
        event = json.loads(UUID.sub("<uuid>", text))
        data = event.get("data")
        if isinstance(data, dict):
            self.data(event["event"], data)
        return event

    def data(self, kind, data):
        if kind == "snapshot":
            data["entries"] = entries(data["entries"])
            data.setdefault("in_flight", [])
            data["greeting"].update(scope_summary="<scope>", context_tokens=0)
        if kind == "rewind_applied":
            data["entries"] = entries(data["entries"])
        if kind == "segment_rotated":
            data["entry"] = entry(data["entry"])
        for key in ("timestamp_ms", "ts"):
            if key in data:
                data[key] = 0
        if kind in ("turn_start", "turn_end"):
            data["turn"] = 0
        if kind in ("llm_call_start", "llm_call_end"):
            data["llm_call"] = 0
        if kind == "rewind_targets":
            data.update(head_entries=0)
            for target in data["targets"]:
                target["id"]["user_input_entry_index"] = 0
                target.update(expected_head_entries=0, truncate_entries=0, timestamp_ms=0, turn_index=0)
        if kind == "rewind_applied":
            data["summary"] = {k: "<number>" if type(v) is int else v for k, v in data["summary"].items()}
        if kind == "error":
            data["message"] = re.sub(r"\d+", "<number>", data["message"])
        if kind == "usage":
            data.update(input_tokens=0, output_tokens=0)
        if kind == "text_done":
            data["text"] = said(data["text"])
        if kind.startswith("tool_"):
            data["id"] = "<call>"
        if kind == "tool_call_done":
            data["arguments"] = json.dumps(json.loads(data["arguments"]), sort_keys=True)
        if kind == "tool_call_args_delta":
            data["json"] = "<fragment>"


def said(text):
    """What the scripted models say: theirs cuts off the rest of a result or of a notification."""
    if text.startswith("OK "):
        return "OK <rest>"
    return re.sub(r"^(hello: )+[\[(].*", "hello: <note>", text, flags=re.S)


def entry(entry):
    """An entry without what differs from run to run, and without the fields that ours adds."""
    entry = dict(entry, ts=0)
    for added in ("id", "origin", "native", "files", "taken", "work", "run"):
        entry.pop(added, None)
    if entry["kind"] == "segment_start":
        entry.update(system_prompt="<prompt>", config="<config>")
        entry["history"] = [{k: v for k, v in item.items() if k not in ("id", "origin", "native")} for item in entry["history"]]
    if entry["kind"] == "turn_end":
        entry["turn_count"] = 0
    if entry["kind"] == "llm_usage":
        entry = {"kind": "llm_usage"}
    item = entry.get("item")
    if isinstance(item, dict):
        item = entry["item"] = dict(item)
        if "call_id" in item:
            item["call_id"] = "<call>"
        if item["kind"] == "message":
            item["content"] = [dict(part, text=said(part.get("text", ""))) for part in item["content"]]
        if item["kind"] == "tool_call":
            item["arguments"] = json.dumps(json.loads(item["arguments"]), sort_keys=True)
    return entry


def entries(log):
    """Entries as one text each. New facts travel as extensions, which old clients skip."""
    return [json.dumps(entry(e), sort_keys=True) for e in log if e["kind"] != "extension"]


def joined(events):
    """Neighbouring deltas of a text as one: how a text is cut into deltas is nobody's business."""
    out = []
    for event in events:
        both = out and out[-1]["event"] == event["event"]
        if both and event["event"] == "text_delta":
            out[-1]["data"]["text"] += event["data"]["text"]
        elif not (both and event["event"] == "tool_call_args_delta"):
            out.append(json.loads(json.dumps(event)))
    for event in out:
        if event["event"] == "text_delta":
            event["data"]["text"] = said(event["data"]["text"])
    return out


def listen(client, recorded, is_last):
    """Hears events until the last recorded one of the step was heard, or nothing comes."""
    heard = []
    if not recorded:
        return heard
    wanted = recorded[-1]["event"]
    times = sum(event["event"] == wanted for event in recorded)
    if wanted == "text_delta":
        times = 1
    while times:
        event = client.receive(PATIENCE)
        if event is None:
            return heard
        heard.append(event)
        times -= event["event"] == wanted
    while is_last and (event := client.receive(SILENCE)) is not None:
        heard.append(event)
    return heard


def differences(recorded, heard):
    """What is missing, added and changed, each as (how, event kind, recorded, heard)."""
    keys = [[event["event"] for event in side] for side in (recorded, heard)]
    found = []
    for how, a, b, c, d in difflib.SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if how == "equal":
            for old, new in zip(recorded[a:b], heard[c:d]):
                if old != new:
                    found.append(("changed", old["event"], old, new))
            continue
        found += [("missing", old["event"], old, None) for old in recorded[a:b]]
        found += [("added", new["event"], None, new) for new in heard[c:d]]
    # Of several of one kind, the one that is the same is not the one that changed.
    for gone in [f for f in found if f[0] == "missing"]:
        other = next((f for f in found if f[0] == "changed" and f[3] == gone[2]), None)
        if other:
            found.remove(other)
            found[found.index(gone)] = ("missing", other[1], other[2], None)
    # The order between what comes from the log and what is broadcast was never promised.
    for old in [f for f in found if f[0] == "missing"]:
        twin = next((f for f in found if f[0] == "added" and f[1] == old[1]), None)
        if twin:
            found.remove(old)
            found.remove(twin)
            if old[2] != twin[3]:
                found.append(("changed", old[1], old[2], twin[3]))
    return found


def changed_fields(old, new, path="data"):
    """The paths at which two values differ. Of lists of texts (entries), what was added and what is
    missing, by kind."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(set(old) | set(new)):
            yield from changed_fields(old.get(key), new.get(key), f"{path}.{key}")
    elif path.endswith("entries") and isinstance(old, list) and isinstance(new, list):
        for line in difflib.ndiff(old, new):
            if line[0] in "+-":
                entry = json.loads(line[2:])
                item = entry.get("item", {}).get("kind", "")
                yield f"{path} {line[0]}{entry['kind']} {item}".rstrip()
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new):
            yield from changed_fields(one, other, path)
    elif old != new:
        yield path


def judged(intended, place, fields):
    """Which rules a difference falls under, and whether something about it is not intended."""
    how, kind, scene, number = place
    rules = [
        (i, rule) for i, rule in enumerate(intended)
        if rule["how"] == how and rule["event"] == kind
        and scene in ([rule["scene"]] if isinstance(rule.get("scene"), str) else rule.get("scene", [scene]))
        and rule.get("step", number) == number
    ]
    if not fields:
        return [i for i, _ in rules], not rules
    fits = [(i, f) for i, rule in rules for f in fields if any(fnmatch.fnmatch(f, p) for p in rule.get("fields", ["*"]))]
    return [i for i, _ in fits], set(fields) != {f for _, f in fits}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--vectors", required=True)
    options.add_argument("--differences", required=True)
    options.add_argument("--socket", action="append", required=True)
    options.add_argument("--map", action="append", default=[])
    options.add_argument("--show", action="store_true")
    options = options.parse_args()
    sockets = dict(pair.split("=", 1) for pair in options.socket)
    normal = Normal(options.map)
    intended = json.load(open(options.differences, encoding="utf-8"))["intended"]
    used, unexpected, compared = set(), [], 0
    for scene, pod, steps in scenes(options.vectors):
        client, targets = Client(sockets[pod]), None
        for number, (line, recorded) in enumerate(steps):
            if line is not None:
                client.send(normal.to_send(line, targets))
            heard = listen(client, recorded, number == len(steps) - 1)
            offered = [[e["data"] for e in side if e["event"] == "rewind_targets"] for side in (recorded, heard)]
            if all(offered):
                targets = (offered[0][0], offered[1][0])
            recorded = [normal.event(e) for e in recorded]
            compared += len(recorded)
            both = [joined(recorded), joined([normal.event(e) for e in heard])]
            # A delta that stopped a step is a prefix of what the other one said.
            for how, kind, old, new in differences(*both):
                fields = sorted(set(changed_fields(old["data"], new["data"]))) if how == "changed" else []
                fits, wrong = judged(intended, (how, kind, scene, number), fields)
                used.update(fits)
                if options.show or wrong:
                    note = "NOT INTENDED " if wrong else ""
                    unexpected += [scene] if wrong else []
                    print(f"{note}{scene} / step {number} ({line}): {how} {kind} {fields}")
                    print(f"    recorded {json.dumps(old)[:1500]}\n    heard    {json.dumps(new)[:1500]}")
        client.close()
    stale = [rule for i, rule in enumerate(intended) if i not in used and not rule.get("may")]
    for rule in stale:
        print(f"INTENDED BUT NOT SEEN {json.dumps(rule)}")
    print(f"{compared} recorded events compared, {len(used)} of {len(intended)} intended differences seen")
    sys.exit(1 if unexpected or stale else 0)


if __name__ == "__main__":
    main()
