// Tests of what the cells of the matrix say, without a browser. Argument: src/report/page/matrix.js.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
const matrixOf = new Function(readFileSync(process.argv[2], "utf8") + "; return matrixOf;")();

// A letter: five for each of ran, new, failed, unstable, missed; in it, at how many granularities it would have been reused.
const letter = (state, level) => String.fromCharCode(48 + 5 * ["ran", "new", "failed", "unstable", "missed"].indexOf(state) + level);
const commit = (sha, tests, cells, more = {}) =>
  ({ sha, subject: "S " + sha, built: true, error: "", tests, cells, reasons: Array.from(cells, () => 0).join(" "), times: Array.from(cells, () => 5).join(" "), exits: [], changes: [], ...more });
const data = {
  tests: ["Alpha", "beta <b>", "gamma"], reasons: ["because"],
  changes: [{ name: "leaf", what: "changed", source: "a.c:7", chain: ["main", "leaf"] }, { name: "gone", what: "removed", chain: ["gone"] }],
  commits: [
    commit("aaa", [], letter("new", 0) + letter("new", 0)),
    commit("b&b", [2, 0], letter("ran", 1) + letter("failed", 0), { exits: [[1, 3]], changes: [[1, [0, 1]]] }),
    commit("ccc", [], "", { built: false, error: "it does not build" }),
    commit("ddd", [], letter("ran", 4) + letter("unstable", 4) + letter("missed", 4)),
  ],
};
const matrix = matrixOf(data);

// Cells: by number where the tests are all there in order, else by their list; none of a later test, none of a broken commit.
assert.deepEqual([0, 1, 2].map((test) => matrix.cellOf(0, test)), [0, 1, -1]);
assert.deepEqual([0, 1, 2].map((test) => matrix.cellOf(1, test)), [1, -1, 0]);
assert.equal(matrix.cellOf(2, 0), -1);

// States: reused from the finest granularity on; a failure stays one.
assert.deepEqual([0, 1, 2, 3].map((at) => matrix.stateOf(1, 0, at)), ["ran", "ran", "ran", "reused"]);
assert.deepEqual([0, 1, 2].map((cell) => matrix.stateOf(3, cell, 0)), ["reused", "unstable", "missed"]);
assert.equal(matrix.stateOf(0, 0, 3), "new");
assert.equal(matrix.stateOf(1, 1, 3), "failed");

// Words.
const told = matrix.tell(1, 0, 3);
assert.deepEqual([told.test, told.commit, told.state], ["Alpha", "b&b S b&b", "failed"]);
assert.equal(told.verdict, "failed, ended with exit code 3, took 5 ms: because");
assert.deepEqual(told.changes, [{ text: "leaf changed (a.c:7)", chain: "main → leaf" }, { text: "gone removed", chain: "" }]);
assert.deepEqual(told.levels, ["whole: runs", "file: runs", "static: runs", "executed: runs"]);
assert.equal(matrix.tell(2, 0, 3).verdict, "it does not build");
assert.match(matrix.tell(1, 1, 3).verdict, /not part of this commit/);

// Search, by name and by what became of a test.
assert.deepEqual(matrix.search("A", "", 3), [0, 1, 2]);
assert.deepEqual(matrix.search("<B>", "", 3), [1]);
assert.deepEqual(matrix.search("", "failed", 3), [0]);
assert.deepEqual(matrix.search("", "ran", 0), [2]);
assert.deepEqual(matrix.search("", "ran", 3), []);
assert.deepEqual(matrix.search("gam", "missed", 3), [2]);

// Addresses lead back; others lead nowhere.
assert.deepEqual(matrix.placeOf(matrix.addressOf(1, 2)), { column: 1, test: 2 });
for (const address of ["", "#", "#commit=b%26b", "#commit=b%26b&test=", "#commit=b%26b&test=9", "#commit=b%26b&test=-1", "#commit=zzz&test=0"])
  assert.equal(matrix.placeOf(address), null, address);

// Keys.
assert.deepEqual(matrix.move("ArrowDown", null, 3, 2), { column: 0, row: 0 });
assert.deepEqual(matrix.move("ArrowDown", { column: 1, row: 1 }, 3, 2), { column: 1, row: 2 });
assert.deepEqual(matrix.move("PageDown", { column: 1, row: 1 }, 3, 9), { column: 1, row: 2 });
assert.deepEqual(matrix.move("End", { column: 1, row: 1 }, 3, 2), { column: 3, row: 1 });
assert.deepEqual(matrix.move("ArrowLeft", { column: 0, row: 1 }, 3, 2), { column: 0, row: 1 });
assert.equal(matrix.move("Tab", { column: 0, row: 1 }, 3, 2), null);
assert.equal(matrix.move("toString", { column: 0, row: 1 }, 3, 2), null);
assert.equal(matrix.move("Home", null, 0, 2), null);
console.log("checked");
