// Opens a large page, and says how long it takes until it can be used and how long a frame takes while it is scrolled.
import { createRequire } from "node:module";
const [page_file, playwright, browser_file] = process.argv.slice(2);
const { chromium } = createRequire(playwright + "/")("playwright-core");
const browser = await chromium.launch({ executablePath: browser_file, headless: true, chromiumSandbox: false, args: ["--disable-gpu"] });
try {
  const page = await browser.newPage();
  const started = performance.now();
  await page.goto("file://" + page_file);
  await page.waitForFunction(() => document.documentElement.dataset.ready === "yes");
  const opened = performance.now() - started;
  const frames = await page.evaluate(async () => {
    const viewport = document.getElementById("viewport"), taken = [];
    for (let number = 0; number < 120; number++) {
      const before = performance.now();
      viewport.scrollTop += 900; viewport.scrollLeft += number % 2 ? 40 : -40;
      await new Promise((done) => requestAnimationFrame(done));
      taken.push(performance.now() - before);
    }
    return taken.sort((one, other) => one - other);
  });
  console.log(JSON.stringify({ opened_ms: Math.round(opened), median_frame_ms: frames[60], slow_frame_ms: frames[114] }));
} finally {
  await browser.close();
}
