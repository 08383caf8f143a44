// Draws the matrix of commits and tests on a canvas as large as what is seen of it, and tells about the chosen cell.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent), matrix = matrixOf(data);
  const element = (id) => document.getElementById(id);
  const [viewport, canvas, spacer, details, shown] = ["viewport", "matrix", "spacer", "details", "shown"].map(element);
  const HEAD = 74;
  let size = data.tests.length > 2000 ? 12 : 16, granularity = 3, rows = data.tests.map((_, number) => number);
  let chosen = null, colours = {}, namesWidth = 280;

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
        const cell = matrix.cellOf(column, rows[row]);
        if (cell < 0 && data.commits[column].built) continue;
        paint.fillStyle = cell < 0 ? colours.none : colours[matrix.stateOf(column, cell, granularity)];
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
    const told = matrix.tell(chosen.column, rows[chosen.row], granularity);
    add(details, "h3", told.test);
    add(details, "p", told.commit);
    add(details, "p", told.verdict, told.state && "reason");
    if (select && told.levels.length > 0) add(details, "p", told.levels.join(" · "), "chain");
    if (told.changes.length === 0) return;
    const list = add(details, "ul", "");
    for (const change of told.changes) {
      const item = add(list, "li", change.text);
      if (change.chain) add(item, "div", change.chain, "chain");
    }
  };

  const choose = (column, row, keepAddress) => {
    chosen = { column, row };
    const x = chosen.column * size, y = chosen.row * size;
    const seenWidth = viewport.clientWidth - namesWidth, seenHeight = viewport.clientHeight - HEAD;
    if (x < viewport.scrollLeft) viewport.scrollLeft = x;
    if (x + size > viewport.scrollLeft + seenWidth) viewport.scrollLeft = x + size - seenWidth;
    if (y < viewport.scrollTop) viewport.scrollTop = y;
    if (y + size > viewport.scrollTop + seenHeight) viewport.scrollTop = y + size - seenHeight;
    if (!keepAddress) history.replaceState(null, "", matrix.addressOf(column, rows[row]));
    tell(); redraw();
  };

  const at = (event) => {
    const box = viewport.getBoundingClientRect();
    const x = event.clientX - box.left - viewport.clientLeft, y = event.clientY - box.top - viewport.clientTop;
    if (y < HEAD) return null;
    const column = Math.floor((Math.max(x, namesWidth) - namesWidth + viewport.scrollLeft) / size);
    const row = Math.floor((y - HEAD + viewport.scrollTop) / size);
    return column < data.commits.length && row < rows.length ? { column, row } : null;
  };

  const fromAddress = () => {
    const place = matrix.placeOf(location.hash), row = place ? rows.indexOf(place.test) : -1;
    if (row >= 0) choose(place.column, row, true);
  };

  const resize = (factor) => { size = Math.max(3, Math.min(40, Math.round(size * factor))); layout(); };

  viewport.addEventListener("scroll", redraw, { passive: true });
  viewport.addEventListener("click", (event) => { const found = at(event); if (found) choose(found.column, found.row); });
  viewport.addEventListener("mousemove", (event) => {
    const found = at(event), told = found && matrix.tell(found.column, rows[found.row], granularity);
    canvas.title = told ? [told.test, told.commit, told.verdict].map((text) => fit(text, 200)).join("\n") : "";
  });
  viewport.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "+" || event.key === "-") { resize(event.key === "+" ? 1.25 : 0.8); return; }
    const place = matrix.move(event.key, chosen, rows.length, Math.floor((viewport.clientHeight - HEAD) / size));
    if (place) { event.preventDefault(); choose(place.column, place.row); }
  });
  // The chosen cell stays, as long as it is seen.
  const find = () => {
    const test = chosen && rows[chosen.row];
    rows = matrix.search(element("search").value, element("state").value, granularity);
    const row = chosen ? rows.indexOf(test) : -1;
    chosen = row >= 0 ? { column: chosen.column, row } : null;
    viewport.scrollTop = row >= 0 ? row * size : 0;
    tell(); layout();
  };
  element("search").addEventListener("input", find);
  element("state").addEventListener("change", find);
  const select = element("granularity");
  if (select) select.addEventListener("change", () => {
    granularity = Number(select.value);
    if (element("state").value) find(); else { tell(); redraw(); }
  });
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
