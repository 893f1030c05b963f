"""An executor of protocol 1 in Python, standard library only: executor.py HOST PORT ID TYPES"""
import re, signal, socket, struct, sys, time

host, port, me, types = sys.argv[1:5]


def encode(d):
    esc = lambda v: str(v).replace("\\", "\\\\").replace("\n", "\\n").replace("=", "\\e")
    text = "\n".join(f"{k}={esc(v)}" for k, v in d.items()).encode()
    return struct.pack(">I", len(text)) + text


def decode(text):
    unesc = lambda v: re.sub(r"\\(.)", lambda m: {"n": "\n", "e": "="}.get(m[1], m[1]), v, flags=re.S)
    return {k: unesc(v) for k, v in (line.split("=", 1) for line in text.split("\n") if "=" in line)}


def exactly(n):
    data = b""
    while len(data) < n:
        more = sock.recv(n - len(data))
        if not more:
            sys.exit("the controller hung up")
        data += more
    return data


def receive():
    return decode(exactly(struct.unpack(">I", exactly(4))[0]).decode())


def ask(**d):
    sock.sendall(encode(d))
    return receive()


OWN = ("type", "task_id", "version", "task_type", "attempt", "timeout_ms", "state_version")


def run(m):
    inputs = {k: v for k, v in m.items() if k not in OWN and not k.startswith("ctx.")}
    if m["task_type"] == "echo":
        return {"status": "success", **inputs}
    if m["task_type"] == "count":
        return {"status": "success", "output_count": 42, "next_batch": 20240501}
    if m["task_type"] == "sleep":
        time.sleep(float(inputs.get("seconds", 1)))
        return {"status": "success"}
    return {"status": "failed", "error": "told to fail" if m["task_type"] == "fail" else "no such type"}


def leave(*_):
    sock.sendall(encode({"type": "offline", "reason": "SIGTERM"}))
    sys.exit(0)


sock = socket.create_connection((host, int(port)))
for s in (signal.SIGTERM, signal.SIGINT):
    signal.signal(s, leave)
if ask(type="register", executor_id=me, task_types=types, load=0).get("status") != "ok":
    sys.exit("not registered")
while True:
    m = ask(type="heartbeat", executor_id=me)
    if m["type"] == "error":
        sys.exit(m["message"])
    if m["type"] == "task":
        ask(type="result", task_id=m["task_id"], **run(m))
