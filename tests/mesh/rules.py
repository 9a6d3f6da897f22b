"""Checks every rule of the wire against the leader that listens at a path. Differences that are intended stand in
README.md; the rules about them are checked as they stand there."""
import gc
import json
import socket
import sys
import time

from wire import Wire, is_id, new_id

PATH = sys.argv[1]
KEYS = ["from", "to", "id", "re", "body"]


def joined(name):
    return Wire(PATH).register(name)


def the_first_line_written_is_the_acknowledgement():
    wire = Wire(PATH)
    wire.write('{"type":"register","name":"first"}\n')
    line = wire.line()
    ack = json.loads(line)
    assert ack.pop("address_assigned") == "first"
    assert ack == {"type": "register_ack", "name_assigned": "first"}, ack
    assert b" " not in line, "compact"


def a_first_line_that_is_no_registration_closes_without_a_word():
    for first in ["hello", '{"type":"hello"}', '{"type":"register"}', '{"type":"register","name":5}', "[]", "null"]:
        wire = Wire(PATH)
        wire.write(first + "\n")
        assert wire.line() is None, first


def a_roster_is_answered_without_a_registration():
    wire = Wire(PATH)
    wire.write('{"type":"list_peers"}\n')
    reply = wire.next()
    assert reply["to"] == "observer" and reply["re"] is None and "leader" in reply["body"]["peers"], reply
    assert wire.register("late").name == "late"


def every_line_of_the_leader_has_the_five_keys_in_order():
    a = joined("a")
    b = joined("b")
    first, ack = a.until(a.send(b.name, 1))
    second, roster = a.until(a.send("broker", {"type": "list_peers"}))
    b.close()
    for line in [*first, ack, *second, roster, a.next()]:
        assert list(line) == KEYS and is_id(line["id"]), line
        assert line["re"] is None or is_id(line["re"])
        assert line["from"] == "broker" and line["to"] == a.name, line


def comers_and_goers_are_told_to_the_others_only():
    a = joined("a")
    b = joined("b")
    c = joined("b")
    b.close()
    told = [a.next()["body"] for _ in range(3)]
    assert [(body["type"], body["name"]) for body in told] == [
        ("peer_joined", b.name), ("peer_joined", c.name), ("peer_left", b.name)], told
    lines, _ = c.list()
    assert [line["body"]["type"] for line in lines] == ["peer_left"], lines


def the_roster_has_everyone_in_the_order_of_joining():
    a, b = joined("a"), joined("b")
    reply = a.until(a.send("broker", {"type": "list_peers"}))[1]
    peers = reply["body"]["peers"]
    assert peers[0] == "leader" and peers[-2:] == [a.name, b.name], peers
    assert [peer["name"] for peer in reply["body"]["peers_detailed"]] == peers


def a_taken_name_gets_the_first_free_number():
    a, b, c = joined("same"), joined("same"), joined("same")
    assert [a.name, b.name, c.name] == ["same", "same#2", "same#3"]
    b.close()
    a.list()
    assert joined("same").name == "same#2"


def names_are_taken_as_they_are_but_for_the_reserved_ones():
    for name in ["a b", "proj/a", "casa:x", "é✓", "#"]:
        assert joined(name).name == name
    for name in ["broker", "broadcast", "", "casa:broker"]:
        assert joined(name).name.split("#")[0] == "agent", name
    long = joined("x" * 300)
    assert long.name == "x" * 256
    assert joined("x" * 300).name == "x" * 254 + "#2"


def other_requests_to_the_leader_are_ignored():
    a = joined("a")
    for body in [{"type": "turn_state", "busy": True}, {"type": "yoi_ping"}, None, 5, "x", {}]:
        a.send("broker", body)
    assert a.seen() == []


def a_message_is_delivered_then_acknowledged():
    a, b = joined("a"), joined("b")
    id = a.send(b.name, {"text": "olá ✓"})
    got = b.next()
    assert got == {"from": a.name, "to": b.name, "id": id, "re": None, "body": {"text": "olá ✓"}}, got
    ack = a.until(id)[1]
    assert ack["body"] == {"type": "ack", "status": "received", "target": b.name} and is_id(ack["id"]), ack
    answer = b.send(a.name, "pong", re=id)
    got = a.next()
    assert (got["id"], got["re"], got["body"]) == (answer, id, "pong"), got
    assert b.until(answer)[1]["body"]["target"] == a.name


def the_sender_is_written_by_the_leader():
    a, b = joined("a"), joined("b")
    a.send(b.name, 1, sender="mallory")
    a.send(b.name, 1, sender="broker")
    assert [b.next()["from"] for _ in range(2)] == [a.name, a.name]


def oneself_unknown_names_and_other_machines_get_no_answer():
    a = joined("a")
    for to in [a.name, "no-such-name", "casa:x-y", ":", "x:", "a#9"]:
        a.send(to, 1)
    assert a.seen() == []


def a_broadcast_reaches_all_but_the_sender_and_is_not_acknowledged():
    a, b, c = joined("a"), joined("b"), joined("c")
    id = a.send("broadcast", {"hi": 1})
    assert a.seen() == []
    for wire in (b, c):
        (got,) = wire.seen()
        assert (got["to"], got["id"], got["from"]) == ("broadcast", id, a.name), got


def an_array_is_delivered_per_name_and_not_acknowledged():
    a, b, c = joined("a"), joined("b"), joined("c")
    to = [b.name, c.name, a.name, "nobody-here", b.name, "broadcast", "casa:" + c.name]
    a.send(to, "m")
    a.send([b.name], "one")
    # Answered behind what was sent, so all of it was routed by then.
    assert a.seen() == []
    assert [line["to"] for line in b.seen()] == [to, to, [b.name]]
    assert [line["to"] for line in c.seen()] == [to]


def invalid_envelopes_are_dropped_and_the_connection_lives():
    a, b = joined("a"), joined("b")
    id = new_id()
    whole = {"from": "a", "to": b.name, "id": id, "re": None, "body": 1}
    wrong = [{key: value for key, value in whole.items() if key != missing} for missing in KEYS]
    for key, value in [("from", ""), ("from", 1), ("to", ""), ("to", []), ("to", [""]), ("to", [1]), ("to", None),
                       ("id", "abc"), ("id", 1), ("id", "z" + id[1:]), ("re", "abc"), ("re", 1)]:
        wrong.append({**whole, key: value})
    for line in ["not json", "[]", "", "5", "{", '{"type":"register","name":"again"}']:
        a.write(line + "\n")
    for envelope in wrong:
        a.write(json.dumps(envelope) + "\n")
    assert a.seen() == [] and b.seen() == []
    a.write(json.dumps(whole) + "\n")
    assert [line["body"]["status"] for line in a.seen()] == ["received"]
    assert [line["id"] for line in b.seen()] == [id]


def further_keys_are_dropped_and_any_uuid_and_null_bodies_are_taken():
    a, b = joined("a"), joined("b")
    id = "00000000-0000-0000-0000-00000000000A"
    a.write('{"x":1,"body":null,"re":null,"id":"%s","to":"%s","from":"z","extra":true}\r\n' % (id, b.name))
    expected = '{"from":"%s","to":"%s","id":"%s","re":null,"body":null}' % (a.name, b.name, id)
    assert b.line() == expected.encode()
    assert a.until(id)[1]["re"] == id


def a_body_passes_through_as_it_was_written():
    a, b = joined("a"), joined("b")
    for body in ["12345678901234567890", "1.0", "1e400", '{"b":1,"a":2,"1":3}', '"\\ud800"', '{"a":1,"a":2}']:
        a.write('{"from":"a","to":"%s","id":"%s","re":null,"body":%s}\n' % (b.name, new_id(), body))
        line = b.line()
        assert line.endswith(b',"body":' + body.encode() + b"}"), line


def lines_may_come_in_pieces_and_together():
    a, b = joined("a"), joined("b")
    lines = b""
    for number in range(3):
        line = {"from": "a", "to": b.name, "id": new_id(), "re": None, "body": f"✓{number}"}
        lines += json.dumps(line, ensure_ascii=False).encode() + b"\n"
    for byte in lines:
        a.write(bytes([byte]))
    a.write(lines)
    assert [b.next()["body"] for _ in range(6)] == ["✓0", "✓1", "✓2"] * 2


def bytes_that_are_no_text_are_replaced():
    a, b = joined("a"), joined("b")
    a.write(b'{"from":"a","to":"%s","id":"%s","re":null,"body":"\xff"}\n' % (b.name.encode(), new_id().encode()))
    assert b.next()["body"] == "�"


def order_is_kept_for_3000_messages_and_their_acknowledgements():
    a, b = joined("a"), joined("b")
    ids = [a.send(b.name, number) for number in range(3000)]
    assert [b.next()["body"] for _ in ids] == list(range(3000))
    acks = [a.next()["re"] for _ in range(3001)][1:]
    assert acks == ids


def half_a_close_is_a_leave():
    a, b = joined("a"), joined("b")
    b.socket.shutdown(socket.SHUT_WR)
    assert b.line() is None
    assert [a.next()["body"]["type"] for _ in range(2)] == ["peer_joined", "peer_left"]


def a_member_cannot_acknowledge():
    forger, a = joined("broker"), joined("a")
    id = a.send("no-such-name", 1)
    forger.write(json.dumps({"from": "broker", "to": a.name, "id": new_id(), "re": id,
                             "body": {"type": "ack", "status": "received", "target": "no-such-name"}}) + "\n")
    forger.list()
    (line,) = a.seen()
    assert line["from"] == forger.name != "broker", line


def a_line_over_the_limit_is_dropped():
    a, b = joined("a"), joined("b")
    a.send(b.name, "x" * (4 << 20))
    a.send(b.name, "small")
    assert len(a.seen()) == 1
    assert [line["body"] for line in b.seen()] == ["small"]


def alone():
    """Waits until the connections of the rule before are gone: nothing of theirs comes into the next one."""
    gc.collect()
    until = time.monotonic() + 20
    while True:
        wire = Wire(PATH)
        wire.write('{"type":"list_peers"}\n')
        if wire.next()["body"]["peers"] == ["leader"]:
            return
        assert time.monotonic() < until, "members of an earlier rule are still there"


def main():
    rules = [rule for name, rule in globals().items() if callable(rule) and rule.__module__ == "__main__"]
    failed = 0
    for rule in rules:
        if rule in (main, joined, alone):
            continue
        try:
            alone()
            rule()
        except Exception as error:
            failed += 1
            print(f"{rule.__name__}: {type(error).__name__} {error}")
    print(f"{len(rules) - 3} rules, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
