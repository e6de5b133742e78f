// The granted directory, through WASI. Paths are relative to it.
//
// Descriptors are given back by hand: a session has a few hundred, and the garbage
// collector does not know that they are few.
import { getDirectories } from "wasi:filesystem/preopens@0.2.12";

import { Failure } from "./failure.js";

// What somebody has to set right; everything else may pass.
const CONFIG = new Set(["access", "not-permitted", "read-only", "no-entry", "not-directory", "is-directory"]);

const FOLLOW = { symlinkFollow: true };
const NO_FOLLOW = {};

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const dispose = (resource) => resource[Symbol.dispose]();

export class Directory {
  constructor(descriptor, base, name) {
    this.descriptor = descriptor;
    this.base = base;
    this.name = name;
  }

  // Finds the grant that a configured path lies in.
  static granted(path) {
    const full = path.replace(/(.)\/+$/, "$1");
    const grants = getDirectories();
    for (const [descriptor, name] of grants) {
      const base = inside(full, name);
      if (base !== undefined) return new Directory(descriptor, base, full);
    }
    const names = grants.map(([, name]) => name).join(", ") || "nothing";
    throw new Failure("config", `the directory ${path} is not granted; granted is ${names}`).at({ field: "path" });
  }

  full(path) {
    return [this.base, path].filter((part) => part !== "").join("/") || ".";
  }

  // Runs a file operation; `instead` says what to return for which error.
  attempt(what, path, run, instead = {}) {
    try {
      return run(this.full(path));
    } catch (error) {
      const code = error?.payload;
      if (typeof code !== "string") throw error;
      if (code in instead) return instead[code];
      const kind = CONFIG.has(code) ? "config" : "transient";
      throw new Failure(kind, `cannot ${what} ${this.name}/${path}: ${code}`);
    }
  }

  exists(path) {
    const stat = (full) => this.descriptor.statAt(FOLLOW, full) !== undefined;
    return this.attempt("look at", path, stat, { "no-entry": false, "not-directory": false });
  }

  // Makes a folder unless it is there, and sees to it that its name is durable.
  makeFolder(path) {
    const make = (full) => this.descriptor.createDirectoryAt(full);
    this.attempt("make the folder", path, make, { exist: undefined });
    const parent = path.split("/").slice(0, -1).join("/");
    if (path !== "") this.syncFolder(parent);
  }

  // Returns the names in a folder, in order; of one that is not there, none.
  list(path) {
    const open = (full) => this.descriptor.openAt(FOLLOW, full, { directory: true }, { read: true });
    const folder = this.attempt("list", path, open, { "no-entry": undefined });
    if (folder === undefined) return [];
    const names = [];
    const entries = folder.readDirectory();
    for (let entry; (entry = entries.readDirectoryEntry()) !== undefined; ) names.push(entry.name);
    dispose(entries);
    dispose(folder);
    return names.sort();
  }

  // Returns a file's text, or undefined if there is none.
  read(path) {
    const open = (full) => this.descriptor.openAt(NO_FOLLOW, full, {}, { read: true });
    const file = this.attempt("read", path, open, { "no-entry": undefined });
    if (file === undefined) return undefined;
    const [bytes] = file.read(BigInt(READ_BYTES_MAX), 0n);
    dispose(file);
    return decoder.decode(bytes);
  }

  // Writes a file in place of an older one: readers see the one or the other.
  replace(path, text, unique) {
    const draft = this.create(`${path}.${unique}`);
    draft.append(encoder.encode(text));
    draft.finish();
    this.rename(`${path}.${unique}`, path);
  }

  // Opens a new file for appending.
  create(path) {
    const open = (full) =>
      this.descriptor.openAt(NO_FOLLOW, full, { create: true, truncate: true }, { write: true });
    return new NewFile(this, path, this.attempt("create", path, open));
  }

  // Gives a file its place, durably.
  rename(from, to) {
    this.attempt("rename to", to, (full) => this.descriptor.renameAt(this.full(from), this.descriptor, full));
    this.syncFolder(to.split("/").slice(0, -1).join("/"));
  }

  remove(path) {
    const unlink = (full) => this.descriptor.unlinkFileAt(full);
    this.attempt("remove", path, unlink, { "no-entry": undefined });
  }

  // Makes names in a folder durable.
  syncFolder(path) {
    this.attempt("sync", path, (full) => {
      const folder = this.descriptor.openAt(FOLLOW, full, { directory: true }, { read: true });
      folder.sync();
      dispose(folder);
    });
  }
}

// The records that are read back are some hundred bytes each.
const READ_BYTES_MAX = 64 * 1024;

// A file that is being written.
class NewFile {
  constructor(directory, path, descriptor) {
    this.directory = directory;
    this.path = path;
    this.descriptor = descriptor;
    this.length = 0n;
  }

  append(bytes) {
    // The system may take less than it is given.
    for (let at = 0; at < bytes.length; ) {
      const write = () => this.descriptor.write(bytes.subarray(at), this.length);
      const written = this.directory.attempt("write", this.path, write);
      if (written === 0n) throw new Failure("transient", `cannot write ${this.path}: nothing is taken`);
      this.length += written;
      at += Number(written);
    }
  }

  // Makes what was written durable, and closes the file.
  finish() {
    this.directory.attempt("sync", this.path, () => this.descriptor.sync());
    dispose(this.descriptor);
  }
}

// Returns the rest of a path inside a grant, or undefined if it is not inside.
export function inside(path, grant) {
  if (path === grant) return "";
  if (path.split("/").includes("..")) return undefined;
  if (grant === ".") return path.startsWith("/") ? undefined : path.replace(/^(\.\/+)+/, "");
  const prefix = grant.endsWith("/") ? grant : `${grant}/`;
  return path.startsWith(prefix) ? path.slice(prefix.length).replace(/^\/+/, "") : undefined;
}
