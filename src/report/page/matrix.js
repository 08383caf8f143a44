// What the cells of the matrix say, without a page. In: the data of the page. Out: states, words, rows, addresses, moves.
"use strict";
const matrixOf = (data) => {
  const LEVELS = 5, STATES = ["ran", "new", "failed", "unstable", "missed"];
  const GRANULARITIES = ["whole", "file", "static", "executed"];

  // For each commit, the cell of each test; nothing if they have the same numbers.
  const columns = data.commits.map((commit) => {
    if (commit.tests.length === 0) return null;
    const cells = new Int32Array(data.tests.length).fill(-1);
    commit.tests.forEach((test, cell) => { cells[test] = cell; });
    return cells;
  });
  const lists = data.commits.map(() => ({}));
  const numberOf = (what, column, cell) => {
    lists[column][what] ??= data.commits[column][what].split(" ");
    return Number(lists[column][what][cell]);
  };
  const lookups = data.commits.map((commit) => ({ exits: new Map(commit.exits), changes: new Map(commit.changes) }));

  // The cell of a test at a commit; -1 if it is no part of it.
  const cellOf = (column, test) => {
    const cell = columns[column] ? columns[column][test] : test;
    return cell >= 0 && cell < data.commits[column].cells.length ? cell : -1;
  };
  const codeOf = (column, cell) => data.commits[column].cells.charCodeAt(cell) - 48;

  // Reused at as many granularities from the finest on as the level says.
  const isReused = (code, granularity) => code % LEVELS >= 4 - granularity;
  const stateOf = (column, cell, granularity) => {
    const code = codeOf(column, cell), state = STATES[Math.floor(code / LEVELS)];
    return (state === "ran" || state === "new") && isReused(code, granularity) ? "reused" : state;
  };

  // A cell in words; without `state` where there is none.
  const tell = (column, test, granularity) => {
    const commit = data.commits[column], cell = cellOf(column, test);
    const told = { test: data.tests[test], commit: commit.sha.slice(0, 12) + " " + commit.subject, levels: [], changes: [] };
    if (cell < 0) return { ...told, verdict: commit.error || "This test is not part of this commit." };
    const state = stateOf(column, cell, granularity), exit = lookups[column].exits.get(cell);
    const verdict = state + (exit ? ", ended with exit code " + exit : "") + ", took " + numberOf("times", column, cell) + " ms: " + data.reasons[numberOf("reasons", column, cell)];
    const levels = GRANULARITIES.map((name, at) => name + ": " + (isReused(codeOf(column, cell), at) ? "reused" : "runs"));
    const changes = (lookups[column].changes.get(cell) || []).map((number) => {
      const { name, what, source, chain } = data.changes[number];
      return { text: name + " " + what + (source ? " (" + source + ")" : ""), chain: chain.length > 1 ? chain.join(" → ") : "" };
    });
    return { ...told, state, verdict, levels, changes };
  };

  // The tests with these words in their names, of those that have a cell in this state; all states if it is empty.
  const search = (words, state, granularity) => {
    const wanted = words.toLowerCase(), seen = new Uint8Array(data.tests.length);
    if (state) data.commits.forEach((commit, column) => {
      for (let cell = 0; cell < commit.cells.length; cell++)
        if (stateOf(column, cell, granularity) === state) seen[columns[column] ? commit.tests[cell] : cell] = 1;
    });
    return data.tests.flatMap((name, test) => ((!state || seen[test]) && name.toLowerCase().includes(wanted) ? [test] : []));
  };

  const addressOf = (column, test) => "#commit=" + encodeURIComponent(data.commits[column].sha) + "&test=" + test;
  // The place that an address names; nothing if it is none.
  const placeOf = (address) => {
    const wanted = new URLSearchParams(address.slice(1));
    const column = data.commits.findIndex((commit) => commit.sha === wanted.get("commit"));
    const test = /^\d+$/.test(wanted.get("test")) ? Number(wanted.get("test")) : -1;
    return column >= 0 && test >= 0 && test < data.tests.length ? { column, test } : null;
  };

  // Where a key leads from a place, with so many rows there and on a page; nothing for other keys. The first one leads to the beginning.
  const move = (key, from, rows, page) => {
    const last = data.commits.length - 1, { column, row } = from || { column: 0, row: 0 };
    const places = {
      ArrowLeft: [column - 1, row], ArrowRight: [column + 1, row], ArrowUp: [column, row - 1], ArrowDown: [column, row + 1],
      Home: [0, row], End: [last, row], PageUp: [column, row - page], PageDown: [column, row + page],
    };
    if (!Object.hasOwn(places, key) || rows === 0 || last < 0) return null;
    const within = (number, most) => Math.max(0, Math.min(most, number));
    const [to, below] = from ? places[key] : [0, 0];
    return { column: within(to, last), row: within(below, rows - 1) };
  };

  return { cellOf, stateOf, tell, search, addressOf, placeOf, move };
};
