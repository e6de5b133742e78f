// What the connector is, and what the host calls.
//
//   spec, validate: what can be held       (nothing is reached)
//   apply:          folders                (layout.js)
//   open ...:       a session              (session.js), its calls in turn (order.js)
//
// Log authority: `store` and `start-commit` stage, `acknowledge` puts into place.
import { log } from "tidegate:connector/runtime@0.1.0";

import { Directory } from "./directory.js";
import { Failure } from "./failure.js";
import { applyBinding, readFolder, readPath } from "./layout.js";
import { Order, acknowledgeCall } from "./order.js";
import { Session } from "./session.js";

const SPEC = {
  configSchema: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "NDJSON files",
    type: "object",
    required: ["path"],
    additionalProperties: false,
    properties: {
      path: {
        title: "Path",
        description: "The directory. It is made if it does not exist; the one it is in must exist.",
        type: "string",
        minLength: 1,
      },
    },
  },
  resourceSchema: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Folder",
    type: "object",
    required: ["folder"],
    additionalProperties: false,
    properties: {
      folder: {
        title: "Folder",
        description: "The folder of the files, inside the directory.",
        type: "string",
        minLength: 1,
        "x-collection-name": true,
      },
    },
  },
  documentationUrl: "https://github.com/ndjson/ndjson-spec",
  wants: { directory: ["/path"] },
  // There is no pacing of its own that it would have to stop.
  defersToSchedule: true,
};

const order = new Order();
let session;

function validate(request) {
  readPath(request.config);
  return {
    bindings: request.bindings.map((binding) => ({
      resourcePath: [readFolder(binding.resource)],
      // A file that is in place is never written again.
      deltaUpdates: true,
      constraints: Object.fromEntries(binding.projections.map((it) => [it.field, constraint(it)])),
    })),
  };
}

function constraint(projection) {
  return projection.pointer === ""
    ? { kind: "recommended", reason: "a line is the whole document" }
    : { kind: "optional", reason: "a line has the selected fields if the document is excluded" };
}

function apply(request) {
  const directory = Directory.granted(readPath(request.next.config));
  const actions = request.next.bindings.flatMap((binding, index) =>
    Failure.within({ binding: index }, () =>
      applyBinding(directory, request.next.task, binding, request.dryRun === true),
    ),
  );
  return { actions };
}

function open(request) {
  const directory = Directory.granted(readPath(request.spec.config));
  session = new Session(directory, request, (message) => log("info", message));
  return { authority: "log", guarantee: "exactlyOnce" };
}

// Runs a call. What is thrown must be an error of the protocol: anything else would
// trap, without a word about where.
function call(run) {
  try {
    return run();
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure("internal", `${error}\n${error?.stack ?? ""}`);
  }
}

// Makes a call with a JSON request and a JSON response, in its turn.
const ask = (name, answer) => (text) =>
  call(() => {
    const request = JSON.parse(text);
    const turn = name === "acknowledge" ? acknowledgeCall(request) : name;
    return order.run(turn, () => JSON.stringify(answer(request)));
  });

const NOTHING = new Uint8Array(0);

// Delta updates are never loaded.
export const connector = {
  spec: () => JSON.stringify(SPEC),
  validate: ask("validate", validate),
  apply: ask("apply", apply),
  open: ask("open", open),
  load: () => call(() => order.run("load", () => {
    throw new Failure("internal", "`load` was called for a binding of delta updates");
  })),
  flush: () => call(() => order.run("flush", () => NOTHING)),
  store: (binding, batch) =>
    call(() => order.run("store", () => Failure.within({ binding }, () => session.store(binding, batch)))),
  startCommit: (_checkpoint) => call(() => order.run("start-commit", () => session.startCommit())),
  acknowledge: ask("acknowledge", (request) => session.acknowledge(request)),
};
