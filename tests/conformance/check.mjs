// Holds what the run left behind against what the server saw.
// Arguments: the server's address, the scratch directory, the transcript, and the exit codes of `run` and
// of `replay --verify`.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [url, scratch, transcript, runCode, replayCode] = process.argv.slice(2);
const read = (path) => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
};
const inScratch = (name) => read(join(scratch, name));

let passed = 0;
let failed = 0;
function check(what, holds, found) {
  if (holds) {
    passed += 1;
  } else {
    failed += 1;
    console.log(`failed: ${what}\n  found: ${JSON.stringify(found)}`);
  }
}

// What we recorded.
const entries = read(transcript).split("\n").filter(Boolean).map((line) => JSON.parse(line));
const of = (type) => entries.filter((entry) => entry.type === type);
const requests = of("request");
const overlays = of("overlay");
const last = entries.at(-1) ?? {};

// What the server saw, as it was sent: the server adds fields that begin with an underscore.
const journal = await (await fetch(`${url}/__aimock/journal`)).json();
const seen = journal.filter((entry) => entry.path === "/v1/chat/completions");
const bodies = seen.map(({ body }) =>
  Object.fromEntries(Object.entries(body).filter(([key]) => !key.startsWith("_"))),
);
writeFileSync(join(scratch, "bodies.jsonl"), bodies.map((body) => `${JSON.stringify(body)}\n`).join(""));
const sha256 = (text) => `sha256:${createHash("sha256").update(text).digest("hex")}`;
const digests = bodies.map((body) => sha256(JSON.stringify(body)));

// The run.
check("run exits with 0", runCode === "0", inScratch("run.log").slice(-2000));
check("the run ended finished", last.type === "end" && last.reason === "finished", last);
check("the answer is on standard output", inScratch("answer").includes("The total is 42"), inScratch("answer"));
const total = inScratch("workspace/total.sh");
check("the file was changed", total.includes("sum += $2") && !total.includes("sum += $3"), total);

// The overlays.
for (const origin of ["micro", "auto", "tool"]) {
  const laid = overlays.filter((overlay) => overlay.origin === origin);
  check(`an overlay of origin ${origin} was laid`, laid.length > 0, overlays.length);
}
for (const origin of ["auto", "tool"]) {
  const summary = overlays.find(
    ({ origin: by, layer }) => by === origin && layer.kind === "summary" && layer.by === "model",
  );
  check(`a summary of origin ${origin} is the model's`, summary, overlays.map(({ layer }) => layer.kind));
}
check("each overlay made the request smaller", overlays.every(({ size }) => size.after < size.before), overlays.map(({ size }) => size));
const results = of("result");
const recalled = results.some(({ content }) => content.includes("d2-007") && !content.includes("d2-008"));
check("what was put away was recalled", recalled, results.length);
check("every call went well but the check that fails at first", results.filter(({ status }) => status !== "ok").length <= 1, results.map(({ status }) => status));

// The faults that the server made on purpose.
const faults = of("fault").map((fault) => fault.class);
check("a rate limit and a torn stream were recorded and overcome", faults.join() === "rate,torn", of("fault"));
check("a call's reasoning was recorded", of("response").some(({ reasoning }) => reasoning?.length > 0), of("response").length);
check("the server's token counts were recorded", of("response").every(({ usage }) => usage?.input > 0 && usage?.output > 0), of("response").map(({ usage }) => usage));

// The two records of one thing.
check("replay --verify exits with 0", replayCode === "0", inScratch("replay.log"));
check("replay proves every request", inScratch("replay.log").includes(`${requests.length} of ${requests.length} requests`), inScratch("replay.log"));
check("the server answered every request from its script", seen.every(({ response }) => response.fixture !== null), seen.filter(({ response }) => response.fixture === null).map(({ body }) => body.messages?.at(-1)));
check("every request was streamed", bodies.every(({ stream, stream_options }) => stream === true && stream_options?.include_usage === true), bodies.map(({ stream }) => stream));
check("each request was sent, and once more after each fault", bodies.length === requests.length + faults.length, [bodies.length, requests.length, faults.length]);
const recorded = new Set(requests.map(({ body }) => body.sha256));
check("what arrived has the recorded digests", digests.length > 0 && digests.every((digest) => recorded.has(digest)), digests.filter((digest) => !recorded.has(digest)));
check("every recorded request arrived", requests.every(({ body }) => digests.includes(body.sha256)), requests.filter(({ body }) => !digests.includes(body.sha256)).map(({ id }) => id));
check("every call has its result", bodies.every(paired), bodies.findIndex((body) => !paired(body)));

const count = (origin) => overlays.filter((overlay) => overlay.origin === origin).length;
console.log(
  `${requests.length} requests, ${results.length} calls, overlays: ${count("micro")} micro, ${count("auto")} auto, ${count("tool")} tool`,
);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

/** Whether each call is followed by its results, in order, and no result is without a call. */
function paired({ messages = [] }) {
  const open = [];
  for (const message of messages) {
    if (message.role === "tool") {
      if (open.shift() !== message.tool_call_id) return false;
      continue;
    }
    if (open.length > 0) return false;
    open.push(...(message.tool_calls ?? []).map(({ id }) => id));
  }
  return open.length === 0 && ["user", "tool"].includes(messages.at(-1)?.role);
}
