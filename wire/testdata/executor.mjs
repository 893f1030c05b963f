// An executor of protocol 1 for Node, nothing to install: executor.mjs HOST PORT ID TYPES
import net from "node:net";

const [host, port, me, types] = process.argv.slice(2);
const own = new Set(["type", "task_id", "version", "task_type", "attempt", "timeout_ms", "state_version"]);
const codes = { "\\": "\\\\", "\n": "\\n", "=": "\\e" };
const plain = { n: "\n", e: "=", "\\": "\\" };

function encode(d) {
  const lines = Object.entries(d).map(([k, v]) => `${k}=${String(v).replace(/[\\\n=]/g, (c) => codes[c])}`);
  const text = Buffer.from(lines.join("\n"));
  const head = Buffer.alloc(4);
  head.writeUInt32BE(text.length);
  return Buffer.concat([head, text]);
}

function decode(text) {
  const fields = text.split("\n").filter((line) => line.includes("=")).map((line) => {
    const at = line.indexOf("=");
    return [line.slice(0, at), line.slice(at + 1).replace(/\\([\s\S])/g, (_, c) => plain[c])];
  });
  return Object.fromEntries(fields);
}

async function run(m) {
  const inputs = Object.fromEntries(Object.entries(m).filter(([k]) => !own.has(k) && !k.startsWith("ctx.")));
  if (m.task_type === "echo") return { status: "success", ...inputs };
  if (m.task_type === "count") return { status: "success", output_count: 42, next_batch: 20240501 };
  if (m.task_type !== "sleep") return { status: "failed", error: m.task_type === "fail" ? "told to fail" : "no such type" };
  await new Promise((done) => setTimeout(done, 1000 * (inputs.seconds ?? 1)));
  return { status: "success" };
}

const send = (d) => sock.write(encode(d));
const beat = () => send({ type: "heartbeat", executor_id: me });

async function take(m) {
  if (m.type === "error") throw new Error(m.message);
  if (m.type !== "task") return beat(); // an ack: of the register, a heartbeat or a result
  send({ type: "result", task_id: m.task_id, ...(await run(m)) });
}

let buffer = Buffer.alloc(0);
const sock = net.connect(Number(port), host, () => send({ type: "register", executor_id: me, task_types: types, load: 0 }));
sock.on("data", (chunk) => {
  buffer = Buffer.concat([buffer, chunk]);
  while (buffer.length >= 4 && buffer.length >= 4 + buffer.readUInt32BE(0)) {
    const end = 4 + buffer.readUInt32BE(0);
    const text = buffer.subarray(4, end).toString();
    buffer = buffer.subarray(end);
    take(decode(text));
  }
});
sock.on("close", () => process.exit(1));
for (const signal of ["SIGTERM", "SIGINT"]) {
  process.on(signal, () => sock.write(encode({ type: "offline", reason: signal }), () => process.exit(0)));
}
