// Draws the matrix of commits and tests on a canvas as large as what is seen of it, and tells about the chosen cell.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const [viewport, canvas, spacer, details, shown] = ["viewport", "matrix", "spacer", "details", "shown"].map(element);
  const LEVELS = 5, HEAD = 74, STATES = ["ran", "new", "failed", "unstable", "missed"];
  const GRANULARITIES = ["whole", "file", "static", "executed"];
  let size = data.tests.length > 2000 ? 12 : 16, granularity = 3, rows = data.tests.map((_, number) => number);
  let chosen = null, colours = {}, namesWidth = 280;

  // For each commit, the cell of each test.
  const columns = data.commits.map((commit) => {
    if (commit.tests.length === 0) return null;
    const cells = new Int32Array(data.tests.length).fill(-1);
    commit.tests.forEach((test, cell) => { cells[test] = cell; });
    return cells;
  });
  const cellOf = (column, test) => {
    const cells = columns[column];
    const cell = cells ? cells[test] : test;
    return cell >= 0 && cell < data.commits[column].cells.length ? cell : -1;
  };
  const byCell = (list) => new Map(list);
  const lookups = data.commits.map((commit) => ({ exits: byCell(commit.exits), changes: byCell(commit.changes) }));

  // Reused at as many granularities from the finest on as the level says.
  const isReused = (level, at) => level >= 4 - at;
  const stateOf = (column, cell) => {
    const code = data.commits[column].cells.charCodeAt(cell) - 48;
    const state = Math.floor(code / LEVELS), level = code % LEVELS;
    if (state >= 2) return STATES[state];
    return isReused(level, granularity) ? "reused" : STATES[state];
  };
  const levelOf = (column, cell) => (data.commits[column].cells.charCodeAt(cell) - 48) % LEVELS;

  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["reused", "ran", "new", "failed", "unstable", "missed", "none", "choice", "text", "dim", "panel", "line"])
      colours[name] = style.getPropertyValue("--" + name).trim();
  };

  let queued = false;
  const redraw = () => { if (!queued) { queued = true; requestAnimationFrame(() => { queued = false; draw(); }); } };

  const layout = () => {
    // On a narrow screen commits have room as well.
    namesWidth = Math.min(280, Math.round(viewport.clientWidth / 2));
    spacer.style.width = namesWidth + data.commits.length * size + "px";
    spacer.style.height = HEAD + rows.length * size + "px";
    viewport.style.height = Math.min(HEAD + rows.length * size + 20, Math.max(300, window.innerHeight * 0.6)) + "px";
    shown.textContent = rows.length + " of " + data.tests.length + " tests, " + data.commits.length + " columns";
    redraw();
  };

  const draw = () => {
    const width = viewport.clientWidth, height = viewport.clientHeight, scale = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale);
      canvas.style.width = width + "px"; canvas.style.height = height + "px";
    }
    const paint = canvas.getContext("2d");
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    paint.fillStyle = colours.panel; paint.fillRect(0, 0, width, height);
    const left = viewport.scrollLeft, top = viewport.scrollTop, gap = size > 6 ? 1 : 0;
    const firstRow = Math.floor(top / size), lastRow = Math.min(rows.length, Math.ceil((top + height - HEAD) / size));
    const firstColumn = Math.floor(left / size), lastColumn = Math.min(data.commits.length, Math.ceil((left + width - namesWidth) / size));
    for (let column = firstColumn; column < lastColumn; column++) {
      const x = namesWidth + column * size - left;
      for (let row = firstRow; row < lastRow; row++) {
        const cell = cellOf(column, rows[row]);
        if (cell < 0 && data.commits[column].built) continue;
        paint.fillStyle = cell < 0 ? colours.none : colours[stateOf(column, cell)];
        paint.fillRect(x, HEAD + row * size - top, size - gap, size - gap);
      }
    }
    if (chosen && rows[chosen.row] !== undefined) {
      paint.strokeStyle = colours.choice; paint.lineWidth = 2;
      paint.strokeRect(namesWidth + chosen.column * size - left, HEAD + chosen.row * size - top, size - 1, size - 1);
    }
    names(paint, firstRow, lastRow, top, height);
    heads(paint, firstColumn, lastColumn, left, width);
  };

  const fit = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

  const names = (paint, first, last, top, height) => {
    paint.fillStyle = colours.panel; paint.fillRect(0, 0, namesWidth, height);
    paint.font = Math.min(12, size) + "px ui-monospace, monospace"; paint.textBaseline = "middle"; paint.textAlign = "left";
    if (size < 8) return;
    for (let row = first; row < last; row++) {
      paint.fillStyle = chosen && chosen.row === row ? colours.text : colours.dim;
      paint.fillText(fit(data.tests[rows[row]].replace(/\s+/g, " "), Math.floor((namesWidth - 8) / 7)), 4, HEAD + row * size - top + size / 2);
    }
  };

  const heads = (paint, first, last, left, width) => {
    paint.fillStyle = colours.panel; paint.fillRect(0, 0, width, HEAD);
    paint.save(); paint.beginPath(); paint.rect(namesWidth - 4, 0, width, HEAD); paint.clip();
    paint.font = "11px ui-monospace, monospace"; paint.textBaseline = "middle";
    const step = Math.max(1, Math.ceil(12 / size));
    for (let column = first; column < last; column++) {
      if (column % step) continue;
      paint.save();
      paint.translate(namesWidth + column * size - left + size / 2, HEAD - 4); paint.rotate(-Math.PI / 2);
      paint.fillStyle = chosen && chosen.column === column ? colours.text : colours.dim;
      paint.fillText(fit(data.commits[column].sha, 9), 0, 0);
      paint.restore();
    }
    paint.restore();
    paint.strokeStyle = colours.line; paint.lineWidth = 1;
    paint.strokeRect(namesWidth - 3.5, HEAD - 2.5, width, viewport.clientHeight);
  };

  // The chosen cell, in words. Texts of tests are only ever texts.
  const add = (parent, kind, text, name) => {
    const made = document.createElement(kind);
    made.textContent = text;
    if (name) made.className = name;
    parent.append(made);
    return made;
  };

  const tell = () => {
    details.replaceChildren();
    if (!chosen || rows[chosen.row] === undefined) return;
    const test = rows[chosen.row], column = chosen.column, commit = data.commits[column], cell = cellOf(column, test);
    add(details, "h3", data.tests[test]);
    add(details, "p", commit.sha.slice(0, 12) + " " + commit.subject);
    if (cell < 0) {
      add(details, "p", commit.error || "This test is not part of this commit.");
      return;
    }
    const state = stateOf(column, cell), exit = lookups[column].exits.get(cell) || 0, level = levelOf(column, cell);
    const end = exit ? ", ended with exit code " + exit : "";
    add(details, "p", state + end + ", took " + commit.times[cell] + " ms: " + data.reasons[commit.reasons[cell]], "reason");
    if (select) add(details, "p", GRANULARITIES.map((name, at) => name + ": " + (isReused(level, at) ? "reused" : "runs")).join(" · "), "chain");
    const changes = lookups[column].changes.get(cell);
    if (changes) {
      const list = add(details, "ul", "");
      for (const number of changes) {
        const change = data.changes[number];
        const item = add(list, "li", change.name + " " + change.what + (change.source ? " (" + change.source + ")" : ""));
        if (change.chain.length > 1) add(item, "div", change.chain.join(" → "), "chain");
      }
    }
  };

  const choose = (column, row, keepAddress) => {
    if (rows.length === 0 || data.commits.length === 0) return;
    chosen = { column: Math.max(0, Math.min(data.commits.length - 1, column)), row: Math.max(0, Math.min(rows.length - 1, row)) };
    const x = chosen.column * size, y = chosen.row * size;
    const seenWidth = viewport.clientWidth - namesWidth, seenHeight = viewport.clientHeight - HEAD;
    if (x < viewport.scrollLeft) viewport.scrollLeft = x;
    if (x + size > viewport.scrollLeft + seenWidth) viewport.scrollLeft = x + size - seenWidth;
    if (y < viewport.scrollTop) viewport.scrollTop = y;
    if (y + size > viewport.scrollTop + seenHeight) viewport.scrollTop = y + size - seenHeight;
    if (!keepAddress) {
      const address = "#commit=" + encodeURIComponent(data.commits[chosen.column].sha) + "&test=" + rows[chosen.row];
      history.replaceState(null, "", address);
    }
    tell(); redraw();
  };

  const at = (event) => {
    const box = viewport.getBoundingClientRect();
    const x = event.clientX - box.left - viewport.clientLeft, y = event.clientY - box.top - viewport.clientTop;
    if (y < HEAD) return null;
    return [Math.floor((Math.max(x, namesWidth) - namesWidth + viewport.scrollLeft) / size), Math.floor((y - HEAD + viewport.scrollTop) / size)];
  };

  const fromAddress = () => {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const column = data.commits.findIndex((commit) => commit.sha === wanted.get("commit"));
    const row = rows.indexOf(Number(wanted.get("test")));
    if (column >= 0 && row >= 0) choose(column, row, true);
  };

  const resize = (factor) => { size = Math.max(3, Math.min(40, Math.round(size * factor))); layout(); };

  viewport.addEventListener("scroll", redraw, { passive: true });
  viewport.addEventListener("click", (event) => { const found = at(event); if (found) choose(...found); });
  viewport.addEventListener("mousemove", (event) => {
    const found = at(event), cell = found && rows[found[1]] !== undefined && data.commits[found[0]];
    canvas.title = cell ? fit(data.tests[rows[found[1]]], 200) + "\n" + cell.sha.slice(0, 10) + " " + fit(cell.subject, 100) : "";
  });
  viewport.addEventListener("keydown", (event) => {
    const { column, row } = chosen || { column: 0, row: 0 }, page = Math.floor((viewport.clientHeight - HEAD) / size);
    const moves = {
      ArrowLeft: [column - 1, row], ArrowRight: [column + 1, row], ArrowUp: [column, row - 1], ArrowDown: [column, row + 1],
      Home: [0, row], End: [data.commits.length - 1, row], PageUp: [column, row - page], PageDown: [column, row + page],
    };
    if (event.key === "+" || event.key === "-") { resize(event.key === "+" ? 1.25 : 0.8); return; }
    if (moves[event.key]) { event.preventDefault(); choose(...(chosen ? moves[event.key] : [0, 0])); }
  });
  element("search").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase();
    rows = data.tests.flatMap((name, number) => (name.toLowerCase().includes(words) ? [number] : []));
    chosen = null; viewport.scrollTop = 0; tell(); layout();
  });
  const select = element("granularity");
  if (select) select.addEventListener("change", () => { granularity = Number(select.value); tell(); redraw(); });
  element("smaller").addEventListener("click", () => resize(0.8));
  element("larger").addEventListener("click", () => resize(1.25));
  window.addEventListener("hashchange", fromAddress);
  new ResizeObserver(layout).observe(viewport);
  for (const query of ["(prefers-color-scheme: dark)", "print"])
    matchMedia(query).addEventListener("change", () => { readColours(); draw(); });

  readColours(); layout();
  viewport.scrollLeft = data.commits.length * size;
  fromAddress(); draw();
  document.documentElement.dataset.ready = "yes";
})();
