"use strict";

const { spawn } = require("node:child_process");
const { dirname, join } = require("node:path");

/** Runs the program under this name, with the arguments of this process, and ends as it does. */
module.exports = function run(name) {
  const program = join(dirname(require.resolve("holdfast/package.json")), "bin", "holdfast");
  const child = spawn(program, [name, ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("error", (error) => {
    console.error(`${name}: ${error.message}`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => {
    process.exitCode = signal ? 1 : code;
  });
};
