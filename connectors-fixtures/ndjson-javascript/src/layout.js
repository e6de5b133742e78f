// Where things lie in the directory.
//
//   orders/0000000001-0000000003-000001-00000000.ndjson   in place
//   orders/.tidegate                                      whose folder it is
//   .tidegate/acmeCo%2Fshop/00000000-ffffffff.fence       who may write
//   .tidegate/acmeCo%2Fshop/0000000001-...staged          not in place yet
//
// Names of files begin with the session's fence and the transaction, so that their
// order is the order of commits, and no session writes over another's.
import { Failure } from "./failure.js";

const OWN = ".tidegate";
// Its name is a part of file names, which have at most 255 bytes.
const FOLDER = /^[^\s/\\.\x00-\x1f][^\s/\\\x00-\x1f]{0,49}$/;
const DATA = /^\d{10,}-\d{10,}-\d{6,}-[0-9a-f]{8}\.ndjson$/;

const pad = (number, digits) => String(number).padStart(digits, "0");
const hex = (number) => number.toString(16).padStart(8, "0");

// Reads an endpoint configuration.
export function readPath(config) {
  const path = config?.path;
  if (typeof path !== "string" || path === "") {
    throw new Failure("config", "the config names no directory: write `path: out`").at({ field: "path" });
  }
  return path;
}

// Reads a binding's resource.
export function readFolder(resource) {
  const folder = resource?.folder;
  if (typeof folder !== "string" || !FOLDER.test(folder)) {
    const found = JSON.stringify(folder) ?? "nothing";
    throw new Failure(
      "config",
      `the resource's folder is ${found}: name one folder, with at most 50 characters, no white space, and no dot in front`,
    ).at({ field: "folder" });
  }
  return folder;
}

// Returns the folder of a task's staged files and fences.
export const taskFolder = (task) => `${OWN}/${task.replaceAll("/", "%2F")}`;

export const fenceFile = (task, range) => `${taskFolder(task)}/${hex(range.begin)}-${hex(range.end)}.fence`;

// Names the files of a transaction.
export const fileName = (fence, transaction, range) =>
  `${pad(fence.epoch, 10)}-${pad(fence.session, 10)}-${pad(transaction, 6)}-${hex(range.begin)}`;

// Reads the key ranges that fences in a task's folder are of.
export function readRange(name) {
  const match = /^([0-9a-f]{8})-([0-9a-f]{8})\.fence$/.exec(name);
  return match && { begin: parseInt(match[1], 16), end: parseInt(match[2], 16) };
}

// Reads what a staged file says of its session; or a fence that a session left which
// ended before it was put into place.
export function readStaged(name) {
  const told = ([epoch, session, begin]) => ({
    fence: { epoch: Number(epoch), session: Number(session) },
    begin: parseInt(begin, 16),
  });
  const staged = /^(\d+)-(\d+)-\d+-([0-9a-f]{8})\..*\.staged$/.exec(name);
  if (staged) return told(staged.slice(1));
  const fence = /^([0-9a-f]{8})-[0-9a-f]{8}\.fence\.(\d+)\.(\d+)$/.exec(name);
  return fence && told([fence[2], fence[3], fence[1]]);
}

// Returns the names of the files that are in place in a folder.
export const dataFiles = (directory, folder) => directory.list(folder).filter((name) => DATA.test(name));

function readClaim(directory, folder) {
  const text = directory.read(`${folder}/${OWN}`);
  return text === undefined ? undefined : JSON.parse(text);
}

// Brings a binding's folder to its spec; returns what was, or would be, done.
export function applyBinding(directory, task, binding, dryRun) {
  const folder = readFolder(binding.resource);
  const backfill = binding.backfill ?? 0;
  const claim = readClaim(directory, folder);
  const files = dataFiles(directory, folder);
  const refuse = (reason) => {
    throw new Failure("schema", `the folder ${directory.name}/${folder} ${reason}`);
  };
  const actions = [];
  if (claim === undefined) {
    if (files.length > 0) refuse("holds files that this connector does not know: name another one");
    actions.push(`make the folder ${folder}`);
  } else if (claim.task !== task) {
    refuse(`belongs to task ${claim.task}: name another one`);
  } else if (claim.backfill > backfill) {
    refuse(`was made for backfill counter ${claim.backfill}, and the spec says ${backfill}: it is only ever raised`);
  } else if (claim.backfill < backfill) {
    actions.push(`remove ${files.length} files from the folder ${folder}`);
  }
  if (dryRun || actions.length === 0) return actions;
  for (const path of ["", OWN, taskFolder(task), folder]) directory.makeFolder(path);
  for (const name of files) directory.remove(`${folder}/${name}`);
  // Last: a crash before this does all of it again.
  directory.replace(`${folder}/${OWN}`, JSON.stringify({ task, backfill }), "new");
  return actions;
}

// Refuses a directory that is not the one that was applied to and committed to.
export function checkApplied(directory, request) {
  const { task, bindings } = request.spec;
  bindings.forEach((binding, index) => {
    const folder = readFolder(binding.resource);
    const claim = readClaim(directory, folder);
    const refuse = (reason) => {
      throw new Failure("schema", `the folder ${directory.name}/${folder} ${reason}`).at({ binding: index });
    };
    if (claim?.task !== task || claim.backfill !== (binding.backfill ?? 0)) {
      refuse("is not as it was made: it was never applied, or replaced; raise the binding's backfill counter");
    }
    // Everything would be written again, beside what is there.
    if ((request.checkpoint ?? null) === null && dataFiles(directory, folder).length > 0) {
      refuse("holds documents, and the host knows of none: use its last data directory, or raise the backfill counter");
    }
  });
}
