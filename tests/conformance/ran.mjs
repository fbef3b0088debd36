// Holds runs against what they were to become. Standard input: one JSON object a line with the name of a
// run, its transcript, the exit codes of `run` and of `replay --verify`, and what to find: the exit code,
// how it ended, the classes of its faults, the statuses of its calls' results, a part of the last text,
// the window that was learned, how the replies ended.

import { readFileSync } from "node:fs";

let passed = 0;
let failed = 0;
function check(what, found, sought) {
  if (JSON.stringify(found) === JSON.stringify(sought)) {
    passed += 1;
  } else {
    failed += 1;
    console.log(`failed: ${what}\n  found: ${JSON.stringify(found)}\n  not: ${JSON.stringify(sought)}`);
  }
}

const lines = (text) => text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
for (const { name, transcript, code, verified, sought } of lines(readFileSync(0, "utf8"))) {
  const entries = lines(readFileSync(transcript, "utf8"));
  const of = (type) => entries.filter((entry) => entry.type === type);
  const responses = of("response");
  const found = {
    code,
    end: entries.at(-1)?.reason,
    faults: of("fault").map((fault) => fault.class),
    results: of("result").map((result) => result.status),
    text: responses.at(-1)?.text ?? "",
    window: of("setup").at(-1)?.wire.models.main.window,
    endings: responses.map((response) => response.ending),
    counted: responses.every(({ usage }) => usage?.input > 0 && usage?.output > 0),
  };
  check(`${name}: replay proves every request`, verified, 0);
  for (const [key, value] of Object.entries(sought)) {
    if (key === "text") {
      check(`${name}: the text holds ${value}`, found.text.includes(value) || found.text, true);
    } else {
      check(`${name}: ${key}`, found[key], value);
    }
  }
  console.log(`${name}: ${responses.length} replies, ${found.results.length} calls, faults: ${found.faults.join(" ") || "none"}`);
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
