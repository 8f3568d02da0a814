// Probe of a JavaScript program, which runs inside the sandbox, in the Node.js of the program.
//
// Usage: `node --expose-internals javascript_probe.cjs COMMAND DESCRIPTOR PROGRAM [ARGUMENT...]`. The file
// descriptor holds a JSON object, the job. The result replaces it.
//
// - `files` finds the source files of the program, with the places of their statements. It executes nothing.
// - `lines` runs the program, and reports the executed lines of each file, with the coverage of V8.
//
// Node.js contains the parser acorn. A version without it gives an error, and nothing is measured.

'use strict';

const child = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { fileURLToPath } = require('node:url');

const MAX_FILES = 400;
const SUFFIXES = ['', '.js', '.cjs', '.mjs', '/index.js', '/index.cjs', '/index.mjs'];
const SKIPPED = new Set(['node_modules', 'test', 'tests', '__tests__']);
const STATEMENT = /^(?!Block|Empty|Labeled)\w+Statement$|^VariableDeclaration$/;
const START = fs.realpathSync('.');

function parse(source) {
  const acorn = require('internal/deps/acorn/acorn/dist/acorn');
  const options = { ecmaVersion: 'latest', allowHashBang: true, locations: true, allowReturnOutsideFunction: true };
  try {
    return acorn.parse(source, { ...options, sourceType: 'module' });
  } catch {
    return acorn.parse(source, { ...options, sourceType: 'script' });
  }
}

// Return the places of the statements as [offset, line], the imported names, and true if a function is defined.
function inspect(source) {
  const found = { statements: [], imports: [], definesFunctions: false };
  const visit = (node, parent) => {
    const isHead = node.type === 'VariableDeclaration' && /^For/.test(parent?.type ?? '') && parent.body !== node;
    if (STATEMENT.test(node.type) && !node.directive && !isHead) {
      found.statements.push([node.start, node.loc.start.line]);
    }
    if (/Function|MethodDefinition/.test(node.type)) found.definesFunctions = true;
    if (node.type === 'ArrowFunctionExpression' && node.expression) {
      found.statements.push([node.body.start, node.body.loc.start.line]);
    }
    const isRequire = node.type === 'CallExpression' && node.callee.name === 'require';
    const source = isRequire ? node.arguments[0] : node.source;
    if (typeof source?.value === 'string') found.imports.push(source.value);
    for (const value of Object.values(node)) {
      for (const part of Array.isArray(value) ? value : [value]) {
        if (typeof part?.type === 'string') visit(part, node);
      }
    }
  };
  visit(parse(source), null);
  return found;
}

function resolve(name, from) {
  if (!name.startsWith('.')) {
    try {
      const found = require.resolve(name, { paths: [path.dirname(from)] });
      return path.isAbsolute(found) ? found : null;
    } catch {
      return null;
    }
  }
  const base = path.resolve(path.dirname(from), name);
  return SUFFIXES.map((one) => base + one).find((one) => fs.statSync(one, { throwIfNoEntry: false })?.isFile()) ?? null;
}

function findFiles(program) {
  const entry = fs.realpathSync(program);
  const files = [];
  const left = {};
  const seen = new Set([entry]);
  const waiting = [entry];
  while (waiting.length && files.length < MAX_FILES) {
    const file = waiting.shift();
    if (!/\.[cm]?js$/.test(file) && file !== entry) continue;
    let source, own;
    try {
      source = fs.readFileSync(file, 'utf8');
      own = inspect(source);
    } catch (error) {
      if (file === entry) throw error;
      continue;
    }
    files.push([path.relative(START, file), source, own.statements]);
    const isWrapper = file === entry && !own.definesFunctions;
    for (const name of own.imports) {
      const target = resolve(name, file);
      if (target === null || seen.has(target)) continue;
      if (name.startsWith('.') || isWrapper) {
        seen.add(target);
        waiting.push(target);
      } else {
        const parts = name.split('/');
        left[name.startsWith('@') ? parts.slice(0, 2).join('/') : parts[0]] = target;
      }
    }
  }
  const unmeasured = {};
  for (const [name, target] of Object.entries(left)) unmeasured[name] = countLines(name, target);
  return { entry: path.relative(START, entry), files, unmeasured, ...readPackage(entry) };
}

function countLines(name, target) {
  const place = path.join('node_modules', name);
  const end = target.lastIndexOf(place);
  const waiting = [end < 0 ? target : target.slice(0, end + place.length)];
  let count = 0;
  for (let number = 0; waiting.length && number < MAX_FILES; number += 1) {
    const file = waiting.shift();
    try {
      if (fs.statSync(file).isDirectory()) {
        const names = fs.readdirSync(file).filter((one) => !SKIPPED.has(one));
        waiting.push(...names.map((one) => path.join(file, one)));
      } else if (/\.[cm]?js$/.test(file)) {
        count += new Set(inspect(fs.readFileSync(file, 'utf8')).statements.map(([, line]) => line)).size;
      }
    } catch {
      continue;
    }
  }
  return count;
}

// Return the names that the program is called by, and the README of its package.
function readPackage(entry) {
  const names = [path.basename(entry), path.basename(entry).replace(/\.[cm]?js$/, '')];
  for (let place = path.dirname(entry); place.startsWith(START); place = path.dirname(place)) {
    const file = path.join(place, 'package.json');
    if (fs.existsSync(file)) {
      const { name, bin } = JSON.parse(fs.readFileSync(file, 'utf8'));
      const readme = fs.readdirSync(place).find((one) => /^readme(\.md)?$/i.test(one));
      const text = readme ? fs.readFileSync(path.join(place, readme), 'utf8') : '';
      const more = typeof bin === 'object' && bin !== null ? Object.keys(bin) : [];
      return { names: [...names, ...[name].filter(Boolean), ...more], readme: text };
    }
  }
  return { names, readme: '' };
}

function traceLines(job, program, args) {
  const place = fs.mkdtempSync(path.join(os.tmpdir(), 'coverage-'));
  const env = { ...process.env, NODE_V8_COVERAGE: place };
  child.spawnSync(process.execPath, [...job.options, program, ...args], { stdio: 'inherit', env });
  const lines = {};
  for (const name of fs.readdirSync(place)) {
    const { result } = JSON.parse(fs.readFileSync(path.join(place, name), 'utf8'));
    for (const { url, functions } of result) {
      if (!url.startsWith('file://')) continue;
      const file = path.relative(START, fileURLToPath(url));
      const ranges = functions.flatMap((one) => one.ranges);
      for (const [offset, line] of job.files[file] ?? []) {
        if (countAt(ranges, offset) > 0) (lines[file] ??= new Set()).add(line);
      }
    }
  }
  return { lines: Object.fromEntries(Object.entries(lines).map(([file, own]) => [file, [...own]])) };
}

// Return how often the code at an offset was executed: the count of the smallest range around it.
function countAt(ranges, offset) {
  let best = { count: 0, size: Infinity };
  for (const { startOffset, endOffset, count } of ranges) {
    const size = endOffset - startOffset;
    if (startOffset <= offset && offset < endOffset && size <= best.size) best = { count, size };
  }
  return best.count;
}

function main() {
  const [command, descriptor, program, ...args] = process.argv.slice(2);
  const report = Number(descriptor);
  const job = JSON.parse(fs.readFileSync(report, 'utf8'));
  const result = command === 'files' ? findFiles(program) : traceLines(job, program, args);
  fs.ftruncateSync(report);
  fs.writeSync(report, JSON.stringify(result), 0);
}

main();
