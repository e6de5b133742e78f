// Lines of NDJSON: the document, or an object of the selected fields.
import { Failure } from "./failure.js";
import { elements } from "./tuple.js";

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;

const encoder = new TextEncoder();

// Returns the lines of documents, as one piece.
export function lines(binding, stores) {
  return binding.document ? documents(stores) : fields(binding, stores);
}

function documents(stores) {
  const parts = stores.map((store) => store.document);
  const text = new Uint8Array(parts.reduce((sum, part) => sum + part.length + 1, 0));
  const ends = [];
  let at = 0;
  for (const part of parts) {
    text.set(part, at);
    at += part.length;
    ends.push(at);
    at += 1;
  }
  // In JSON text, line breaks are white space: within strings they are escaped.
  for (const end of [NEWLINE, RETURN]) {
    for (let at = text.indexOf(end); at !== -1; at = text.indexOf(end, at)) text[at] = SPACE;
  }
  for (const end of ends) text[end] = NEWLINE;
  return text;
}

function fields(binding, stores) {
  const names = [...binding.key, ...binding.values].map((it) => `${JSON.stringify(it.field)}:`);
  let text = "";
  for (const store of stores) {
    const values = elements(store.values, elements(store.key));
    if (values.length !== names.length) {
      throw new Failure("internal", `${values.length} values were stored, and ${names.length} fields are selected`);
    }
    let separator = "{";
    for (let index = 0; index < names.length; index += 1) {
      text += separator + names[index] + values[index];
      separator = ",";
    }
    text += "}\n";
  }
  return encoder.encode(text);
}
