// Makes the component: node componentize.js WIT_DIR OUT_FILE
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { componentize } from "@bytecodealliance/componentize-js";

const [witPath, out] = process.argv.slice(2);
const { component } = await componentize({
  sourcePath: fileURLToPath(new URL("src/connector.js", import.meta.url)),
  witPath,
  worldName: "ndjson",
  // The engine imports wasi:http for `fetch`, which this connector has no use for.
  disableFeatures: ["http", "fetch-event"],
});
await writeFile(out, component);
