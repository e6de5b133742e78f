// Fences: how an older session is kept from committing.
//
//   open     read the fences that overlap -> raise -> write ours, remove older ones of other ranges
//   commit   ours is still there
//
// Files cannot be compared and swapped. They need not be: what counts is what the
// host's log says, and a session that lost there is never told to acknowledge.
import { Failure } from "./failure.js";
import { fenceFile, readRange, taskFolder } from "./layout.js";

const name = (fence) => `${fence.epoch}.${fence.session}`;

// Compares two fences: the epoch first.
export const compare = (a, b) => a.epoch - b.epoch || a.session - b.session;

export function raise(directory, task, range, own) {
  const folder = taskFolder(task);
  const overlapping = directory
    .list(folder)
    .map((file) => ({ path: `${folder}/${file}`, range: readRange(file) }))
    .filter((it) => it.range && it.range.begin <= range.end && range.begin <= it.range.end);
  const path = fenceFile(task, range);
  for (const held of overlapping) {
    const fence = read(directory, held.path);
    // Shards of one new layout open with one fence each in turn.
    const order = fence === undefined ? -1 : compare(fence, own);
    if (order > 0 || (order === 0 && held.path === path)) {
      throw new Failure(
        "transient",
        `session ${name(own)} is refused: the destination has been opened by session ${name(fence)}`,
      );
    }
  }
  directory.replace(path, JSON.stringify(own), name(own));
  for (const held of overlapping) {
    if (held.path !== path) directory.remove(held.path);
  }
}

export function check(directory, task, range, own) {
  const held = read(directory, fenceFile(task, range));
  if (held !== undefined && compare(held, own) === 0) return;
  const why = held === undefined ? "the destination's record of it is gone" : `the destination has been opened by session ${name(held)}`;
  throw new Failure("transient", `session ${name(own)} is fenced off: ${why}`);
}

function read(directory, path) {
  const text = directory.read(path);
  return text === undefined ? undefined : JSON.parse(text);
}
