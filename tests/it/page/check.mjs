// Opens a page in a browser and checks what people see and do. Arguments: the page, playwright-core, the browser, a folder for pictures.
import { createRequire } from "node:module";
import assert from "node:assert/strict";
const [page_file, playwright, browser_file, pictures] = process.argv.slice(2);
const { chromium } = createRequire(playwright + "/")("playwright-core");
const args = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: browser_file, headless: true, chromiumSandbox: false, args });
try {
  const errors = [], requests = [];
  const open = async (options, hash = "") => {
    const page = await browser.newPage({ viewport: { width: 1200, height: 900 }, ...options });
    page.setDefaultTimeout(300000); // a busy machine is no failure
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
    page.on("dialog", (dialog) => { errors.push("dialog: " + dialog.message()); dialog.dismiss(); });
    page.on("request", (request) => { if (!request.url().startsWith("file:")) requests.push(request.url()); });
    await page.goto("file://" + page_file + hash);
    await page.waitForFunction(() => document.documentElement.dataset.ready === "yes");
    return page;
  };
  // Texts that differ too little from what is behind them (less than 4.5 to 1).
  const pale = () => {
    const light = (colour) => {
      const parts = colour.match(/[\d.]+/g).slice(0, 3).map((part) => part / 255);
      const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (found) => {
      for (let at = found; at; at = at.parentElement) {
        const colour = getComputedStyle(at).backgroundColor;
        if (!/, 0\)$|transparent/.test(colour)) return colour;
      }
      return "rgb(255, 255, 255)";
    };
    return Array.from(document.querySelectorAll("p, th, td, h1, h2, h3, b, span, label, code, li, button, select, input")).filter((found) => {
      if (!found.textContent.trim() || !found.getClientRects().length) return false;
      const [one, other] = [light(getComputedStyle(found).color), light(behind(found))].sort((a, b) => b - a);
      return (one + 0.05) / (other + 0.05) < 4.5;
    }).map((found) => found.outerHTML.slice(0, 100));
  };
  const page = await open({ colorScheme: "light" });
  const details = page.locator("#details");
  const colour_at = (column, row) => page.evaluate(([column, row]) => {
    const scale = window.devicePixelRatio, paint = document.getElementById("matrix").getContext("2d");
    const x = 280 + column * 16 + 7, y = 74 + row * 16 + 7;
    return Array.from(paint.getImageData(x * scale, y * scale, 1, 1).data.slice(0, 3)).join(",");
  }, [column, row]);

  // Names, roles and landmarks.
  for (const name of ["Summary", "Matrix", "Granularities", "Time over commits", "Tests by cost", "Changes by cost", "Troubles"])
    assert.equal(await page.getByRole("region", { name, exact: true }).count(), 1, name);
  await page.getByRole("searchbox", { name: "Search" }).waitFor();
  await page.getByRole("combobox", { name: "Granularity" }).waitFor();
  await page.getByRole("combobox", { name: "Show" }).waitFor();
  for (const name of ["Smaller cells", "Larger cells"]) assert.equal(await page.getByRole("button", { name }).count(), 1, name);
  assert.equal(await page.getByRole("application", { name: /^Matrix of commits and tests/ }).count(), 1);
  for (const name of ["Granularities", "Tests by cost", "Changes of a function", "Changes of a file", "Troubles"])
    assert.equal(await page.getByRole("table", { name, exact: true }).count(), 1, name);
  for (const name of ["test", "how often", "of all tests", "what to do"])
    assert.ok(await page.getByRole("columnheader", { name, exact: true }).count() > 0, name);
  // Whatever is drawn or used has a name.
  assert.deepEqual(await page.evaluate(() => Array.from(document.querySelectorAll("svg, button, input, select, [role]"))
    .filter((found) => !found.getAttribute("aria-label") && !found.closest("label") && !["status"].includes(found.getAttribute("role")))
    .map((found) => found.outerHTML.slice(0, 100))), []);
  assert.equal(await page.locator("script").count(), 2);
  assert.equal(await page.locator("img").count(), 0);

  // Cells by colour: reused, ran, failed.
  const light = [await colour_at(1, 0), await colour_at(0, 1), await colour_at(1, 1)];
  assert.equal(new Set(light).size, 3, light.join(" "));
  assert.equal(await colour_at(1, 3), light[2], "a failure that only the output tells of");

  // The mouse over a cell.
  await page.locator("#viewport").hover({ position: { x: 280 + 16 + 5, y: 74 + 16 + 5 } });
  assert.match(await page.locator("#matrix").getAttribute("title"), /^plain\nbbbb1 <u>S<\/u>\nfailed, ended with exit code 3, took 80 ms: because of <b>plain<\/b>$/);

  // The keyboard.
  await page.locator("#viewport").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  assert.match(await details.textContent(), /plain.*failed, ended with exit code 3/s);
  assert.match(await details.textContent(), /main → middle → leaf/);
  assert.match(page.url(), /#commit=bbbb\d*&test=1$/);

  // A click, and names that mean harm.
  await page.locator("#viewport").click({ position: { x: 280 + 16 + 5, y: 74 + 5 } });
  assert.match(await details.textContent(), /<script>alert\(1\)<\/script>/);
  assert.equal(await page.evaluate(() => window.harmed), undefined);

  // Granularities.
  await page.getByRole("combobox", { name: "Granularity" }).selectOption("whole");
  await page.waitForFunction(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))));
  assert.notEqual(await colour_at(1, 0), light[0]);
  await page.getByRole("combobox", { name: "Granularity" }).selectOption("executed");

  // Search.
  await page.getByRole("searchbox", { name: "Search" }).fill("PLAIN");
  assert.match(await page.getByRole("status").textContent(), /^1 of \d+ tests/);
  await page.getByRole("searchbox", { name: "Search" }).fill("");
  await page.getByRole("combobox", { name: "Show" }).selectOption("failed");
  assert.match(await page.getByRole("status").textContent(), /^2 of 4 tests/);
  await page.getByRole("combobox", { name: "Show" }).selectOption("");

  // Larger and smaller.
  const height = () => page.locator("#spacer").evaluate((found) => found.clientHeight);
  const before = await height();
  await page.getByRole("button", { name: "Larger cells" }).click();
  assert.ok(await height() > before);
  await page.locator("#viewport").focus();
  await page.keyboard.press("-");
  assert.equal(await height(), before);

  // Without a mouse: Tab leads through everything.
  await page.getByRole("searchbox", { name: "Search" }).focus();
  const passed = [];
  for (let number = 0; number < 6; number++) {
    passed.push(await page.evaluate(() => document.activeElement.id));
    await page.keyboard.press("Tab");
  }
  assert.deepEqual(passed, ["search", "state", "granularity", "smaller", "larger", "viewport"]);
  await page.screenshot({ path: pictures + "/light.png", fullPage: true });

  // The link to a cell, in the dark.
  const dark = await open({ colorScheme: "dark" }, "#commit=bbbb1&test=1");
  assert.match(await dark.locator("#details").textContent(), /exit code 3/);
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.notEqual(await background(dark), await background(page));
  for (const shown of [page, dark]) assert.deepEqual(await shown.evaluate(pale), []);
  await dark.screenshot({ path: pictures + "/dark.png", fullPage: true });

  // Paper is white, also for whoever reads in the dark.
  await dark.emulateMedia({ media: "print" });
  assert.equal(await background(dark), await background(page));
  const paper = await page.pdf();
  assert.ok(paper.length > 5000);

  // A narrow window scrolls the matrix, not the page.
  const narrow = await open({ viewport: { width: 320, height: 800 } });
  assert.ok(await narrow.evaluate(() => document.documentElement.scrollWidth <= 320), "the page is wider than the window");
  const half = await narrow.evaluate(() => Math.round(document.getElementById("viewport").clientWidth / 2));
  await narrow.locator("#viewport").click({ position: { x: half + 5, y: 74 + 5 } });
  assert.match(narrow.url(), /#commit=bbbb0/, "the first commit has no room beside the names");

  assert.deepEqual(errors, []);
  assert.deepEqual(requests, []);
  console.log("checked");
} finally {
  await browser.close();
}
