#!/usr/bin/env node
require("./run.js")("azurite-blob");
