// A session, from `open` to the end of the instance.
//
//   open          fence raised, staged files that the state does not name removed
//   store         lines -> a staged file a binding
//   start-commit  staged files durable -> patch: where they are, and where they belong
//   acknowledge   renamed into place, unless they are there already -> patch: nothing is staged
import { stores } from "./batch.js";
import { Failure } from "./failure.js";
import { check, compare, raise } from "./fence.js";
import { checkApplied, fileName, readFolder, readStaged, taskFolder } from "./layout.js";
import { lines } from "./line.js";

export class Session {
  constructor(directory, request, log) {
    this.directory = directory;
    this.task = request.spec.task;
    this.bindings = request.spec.bindings;
    this.range = request.range;
    this.fence = request.fence;
    this.transaction = 1;
    this.files = new Map();
    this.staged = request.state?.staged ?? [];

    checkApplied(directory, request);
    raise(directory, this.task, this.range, this.fence);
    const removed = this.removeForgotten();
    if (removed > 0) log(`removed ${removed} staged files that no commit names`);
  }

  // Removes what earlier sessions staged and did not commit. Of later ones, which
  // there may be by now, it removes nothing.
  removeForgotten() {
    const folder = taskFolder(this.task);
    const named = new Set(this.staged.map((it) => it.from));
    const forgotten = this.directory.list(folder).filter((name) => {
      const staged = readStaged(name);
      const ours = staged && this.range.begin <= staged.begin && staged.begin <= this.range.end;
      return ours && compare(staged.fence, this.fence) < 0 && !named.has(`${folder}/${name}`);
    });
    for (const name of forgotten) this.directory.remove(`${folder}/${name}`);
    return forgotten.length;
  }

  store(index, batch) {
    const binding = this.bindings[index];
    if (binding === undefined) {
      throw new Failure("internal", `there is no binding ${index}: the spec has ${this.bindings.length}`);
    }
    if (!this.files.has(index)) this.files.set(index, this.stage(binding));
    this.files.get(index).file.append(lines(binding, stores(batch)));
  }

  // Makes the file of a binding in this transaction.
  stage(binding) {
    const name = fileName(this.fence, this.transaction, this.range);
    const folder = readFolder(binding.resource);
    const file = this.directory.create(`${taskFolder(this.task)}/${name}.${folder}.staged`);
    return { file, to: `${folder}/${name}.ndjson` };
  }

  startCommit() {
    check(this.directory, this.task, this.range, this.fence);
    this.transaction += 1;
    if (this.files.size === 0) return undefined;
    this.staged = [];
    for (const { file, to } of this.files.values()) {
      file.finish();
      this.staged.push({ from: file.path, to });
    }
    this.files.clear();
    this.directory.syncFolder(taskFolder(this.task));
    return JSON.stringify({ staged: this.staged });
  }

  acknowledge(request) {
    check(this.directory, this.task, this.range, this.fence);
    for (const patch of request.patches ?? []) {
      if (patch?.staged !== undefined) this.staged = patch.staged ?? [];
    }
    if (this.staged.length === 0) return {};
    for (const { from, to } of this.staged) this.putIntoPlace(from, to);
    this.staged = [];
    return { patch: { staged: null } };
  }

  putIntoPlace(from, to) {
    if (this.directory.exists(from)) {
      this.directory.rename(from, to);
    } else if (!this.directory.exists(to)) {
      throw new Failure(
        "internal",
        `${this.directory.name}/${from} is gone, and ${to} is not there: its documents are committed and lost; ` +
          "put the file back, or raise the binding's backfill counter",
      );
    }
  }
}
