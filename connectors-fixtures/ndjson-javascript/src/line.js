// Lines of NDJSON: the document, or an object of the selected fields.
import { Failure } from "./failure.js";
import { elements } from "./tuple.js";

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;

const encoder = new TextEncoder();

// Returns the lines of documents, as one piece.
export function lines(binding, stores) {
  const parts = binding.document ? stores.map((store) => store.document) : fields(binding, stores);
  const length = parts.reduce((sum, part) => sum + part.length + 1, 0);
  const text = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    text.set(part, at);
    onOneLine(text.subarray(at, at + part.length));
    at += part.length;
    text[at] = NEWLINE;
    at += 1;
  }
  return text;
}

// In JSON text, line breaks are white space: within texts they are escaped.
function onOneLine(text) {
  for (const end of [NEWLINE, RETURN]) {
    for (let at = text.indexOf(end); at !== -1; at = text.indexOf(end, at)) text[at] = SPACE;
  }
}

function fields(binding, stores) {
  const names = [...binding.key, ...binding.values].map((it) => `${JSON.stringify(it.field)}:`);
  return stores.map((store) => {
    const values = [...elements(store.key), ...elements(store.values)];
    if (values.length !== names.length) {
      throw new Failure("internal", `${values.length} values were stored, and ${names.length} fields are selected`);
    }
    return encoder.encode(`{${names.map((name, index) => name + values[index]).join(",")}}`);
  });
}
