// Receives webhooks of Holdfast with Node.js alone, 18 or newer.
//
//     HOLDFAST_SECRET=hfs_... node receiver.mjs
//
// Every event is a line of the file INBOX before it is answered; that file is where your own work begins. While
// the secret is rotated, HOLDFAST_SECRET has both, with a space between them.

import { createHmac, timingSafeEqual } from "node:crypto";
import { closeSync, fsyncSync, openSync, readFileSync, truncateSync, writeSync } from "node:fs";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const TOLERANCE_SECONDS = 300;
const LONGEST_BODY = 1024 * 1024;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whether Holdfast has signed these very bytes, within five minutes of now. */
export function isDelivery(headers, body, secrets, now) {
  const timestamp = headers["x-service-timestamp"] ?? "";
  const digest = /^sha256=([0-9a-f]{64})$/.exec(headers["x-service-signature"] ?? "")?.[1];
  if (!digest || !/^[0-9]{1,15}$/.test(timestamp)) return false;
  if (Math.abs(now - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  return secrets.some((secret) => {
    const expected = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest();
    return timingSafeEqual(Buffer.from(digest, "hex"), expected);
  });
}

/** The event, if the headers name the same one as the signed body; otherwise null. */
export function eventOf(headers, body) {
  try {
    const event = JSON.parse(body.toString("utf8"));
    const complete = event.data.unit !== undefined && event.createdAt.endsWith("Z") && UUID.test(event.id);
    const named = event.id === headers["x-service-delivery"] && event.type === headers["x-service-event"];
    return complete && named ? event : null;
  } catch {
    return null;
  }
}

/** One line for each event, on disk before it counts; a repeated id adds none. */
class Inbox {
  constructor(path) {
    this.path = path;
    closeSync(openSync(path, "a"));
    const content = readFileSync(path);
    const whole = content.subarray(0, content.lastIndexOf("\n") + 1);
    truncateSync(path, whole.length); // a line cut off by a crash was never answered
    const lines = whole.toString("utf8").split("\n").slice(0, -1);
    this.ids = new Set(lines.map((line) => JSON.parse(line).id));
  }

  add(event) {
    if (this.ids.has(event.id)) return false;
    const file = openSync(this.path, "a");
    writeSync(file, `${JSON.stringify(event)}\n`);
    fsyncSync(file);
    closeSync(file);
    this.ids.add(event.id);
    return true;
  }
}

/** The raw bytes: JSON that was parsed and written anew has others. */
async function bodyOf(request) {
  const parts = [];
  let length = 0;
  for await (const part of request) {
    length += part.length;
    if (length > LONGEST_BODY) return null;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

async function judge(request, secrets, inbox) {
  if (request.method !== "POST") return 405;
  const body = await bodyOf(request);
  if (body === null) return 413;
  if (!isDelivery(request.headers, body, secrets, Math.floor(Date.now() / 1000))) return 401;
  const event = eventOf(request.headers, body);
  if (event === null) return 400;
  if (inbox.add(event)) console.log(event.type, event.data.unit?.code ?? "-");
  return 200;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const secrets = process.env.HOLDFAST_SECRET.split(" ");
  const inbox = new Inbox(process.env.INBOX ?? "inbox.ndjson");
  const server = createServer(async (request, response) => {
    const status = await judge(request, secrets, inbox).catch(() => 500);
    response.writeHead(status, { "Content-Length": 0 }).end();
  });
  server.listen(Number(process.env.PORT ?? 9000), "127.0.0.1");
}
