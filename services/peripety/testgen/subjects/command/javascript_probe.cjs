// Probe of a JavaScript program, which runs inside the sandbox, in the Node.js of the program.
//
// Usage: `node --expose-internals javascript_probe.cjs COMMAND DESCRIPTOR PROGRAM [ARGUMENT...]`. The file
// descriptor holds a JSON object, the job. The results replace it, one JSON value per line.
//
// - `files` finds the source files of the program, with the places of their statements. It executes nothing.
// - `calls` runs the program with many inputs, until a limit of processor time. It reports the result of each.
// - `lines` runs the program, and reports the executed lines of each file, with the coverage of V8.
// - `instrument` writes all mutants into the files, with the instrumenter of Stryker. It executes nothing.
// - `mutants` runs the program with these files, and then each mutant, by a variable of its environment.
//
// Node.js contains the parser acorn. A version without it gives an error, and nothing is measured.

'use strict';

const child = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { createRequire } = require('node:module');
const { fileURLToPath, pathToFileURL } = require('node:url');

const MAX_FILES = 400;
// Executions of a part are counted up to this number; beyond it, only their order of magnitude matters.
const MAX_COUNT = 4;
const PARALLEL_CALLS = 2;
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MIN_SECONDS = 1;
// A mutant may take so many times as long as the program, and one second at least.
const SLOWDOWN = 5;
const LINE_END = /\r\n|[\n\r\u2028\u2029]/;
const LOG_METHODS = new Set(['error', 'warn', 'debug', 'trace']);
const MAX_LINE_CHARACTERS = 1000;
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

// Return the places of the statements as [offset, line, end], the imported names, the functions as [line, first
// line of the body, last line], and the literals as [line of the function, line, kind, text]. Without one it is 0.
function inspect(source) {
  const found = { statements: [], imports: [], functions: [], literals: [] };
  const visit = (node, parent, place) => {
    const isHead = node.type === 'VariableDeclaration' && /^For/.test(parent?.type ?? '') && parent.body !== node;
    if (STATEMENT.test(node.type) && !node.directive && !isHead) {
      found.statements.push([node.start, node.loc.start.line, node.end]);
    }
    if (/Function/.test(node.type)) {
      place = node.loc.start.line;
      found.functions.push([place, (node.body.body?.[0] ?? node.body).loc.start.line, node.loc.end.line]);
    }
    const kind = parent && kindOf(node, parent);
    if (kind) found.literals.push([place, node.loc.start.line, kind, node.regex?.pattern ?? String(node.value)]);
    if (node.type === 'ArrowFunctionExpression' && node.expression) {
      found.statements.push([node.body.start, node.body.loc.start.line, node.body.end]);
    }
    const isRequire = node.type === 'CallExpression' && node.callee.name === 'require';
    const source = isRequire ? node.arguments[0] : node.source;
    if (typeof source?.value === 'string') found.imports.push(source.value);
    for (const value of Object.values(node)) {
      for (const part of Array.isArray(value) ? value : [value]) {
        if (typeof part?.type === 'string') visit(part, node, place);
      }
    }
  };
  visit(parse(source), null, 0);
  return found;
}

// Return the kind of a literal that may be a value for an argument; null for any other node.
function kindOf(node, parent) {
  if (node.type !== 'Literal') return null;
  if (node.regex) return 'pattern';
  if (typeof node.value === 'number') {
    const isLength = parent.type === 'BinaryExpression' && parent.left.property?.name === 'length';
    return isLength ? 'length' : 'number';
  }
  if (typeof node.value !== 'string' || parent.directive || parent.source === node) return null;
  if (parent.type === 'CallExpression') return parent.callee.name === 'require' ? null : 'argument';
  const isCompared = /^(BinaryExpression|SwitchCase|ArrayExpression)$/.test(parent.type) || parent.key === node;
  return isCompared ? 'compared' : 'text';
}

function resolve(name, from) {
  try {
    const found = createRequire(from).resolve(name);
    return path.isAbsolute(found) ? found : null;
  } catch {
    return null;
  }
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
    files.push([path.relative(START, file), source, own.statements, own.functions, own.literals]);
    const isWrapper = file === entry && !own.functions.length;
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
  return readCoverage(place, START, job.files);
}

// Return the executed lines of files in a directory, and a number for how often each part of them was executed.
function readCoverage(place, directory, files) {
  const lines = {};
  const features = new Set();
  for (const name of fs.existsSync(place) ? fs.readdirSync(place) : []) {
    const { result } = JSON.parse(fs.readFileSync(path.join(place, name), 'utf8'));
    for (const { url, functions } of result) {
      if (!url.startsWith('file://')) continue;
      const file = path.relative(directory, fileURLToPath(url));
      if (!files[file]) continue;
      const ranges = functions.flatMap((one) => one.ranges);
      const own = new Set();
      for (const [offset, line] of files[file]) {
        if (countAt(ranges, offset) > 0) own.add(line);
      }
      lines[file] = [...own];
      // Within a function that was called, the parts that were left out show something, too.
      const called = functions.filter((one) => one.ranges[0].count > 0);
      for (const { startOffset, endOffset, count } of called.flatMap((one) => one.ranges)) {
        const shown = count <= MAX_COUNT ? count : MAX_COUNT + Math.floor(Math.log2(count));
        features.add(hash(`${file}:${startOffset}:${endOffset}:${shown}`));
      }
    }
  }
  return { lines, features: [...features] };
}

// Return a number of 32 bits for a text (FNV-1a).
function hash(text) {
  let number = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    number = Math.imul(number ^ text.charCodeAt(index), 0x01000193);
  }
  return number >>> 0;
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

// Return the files with all mutants in them, and the mutants, each with the line of its statement.
async function instrument(job) {
  const name = '@stryker-mutator/instrumenter';
  // A package finds itself in directories of any name.
  const found = createRequire(path.join(job.tool, name, 'index.js')).resolve(name);
  const { Instrumenter } = await import(pathToFileURL(found));
  const isLog = ({ node }) =>
    node.type === 'CallExpression' &&
    node.callee.object?.name === 'console' &&
    LOG_METHODS.has(node.callee.property.name);
  const options = {
    plugins: null,
    excludedMutations: [],
    ignorers: [{ shouldIgnore: (place) => (isLog(place) ? 'a message' : undefined) }],
  };
  const quiet = new Proxy({}, { get: () => () => false });
  const files = {};
  const mutants = [];
  for (const [name, statements] of Object.entries(job.files)) {
    const content = fs.readFileSync(name, 'utf8');
    // A script may have no suffix, and the instrumenter needs one.
    const shown = path.resolve(/\.[cm]?[jt]s$/.test(name) ? name : `${name}.js`);
    let result;
    try {
      const mutate = findShortLines(content);
      result = await new Instrumenter(quiet).instrument([{ name: shown, content, mutate }], options);
    } catch {
      continue;
    }
    files[name] = result.files[0].content;
    const starts = [0];
    for (const { 0: ending, index } of content.matchAll(new RegExp(LINE_END, 'g'))) starts.push(index + ending.length);
    for (const { id, location, mutatorName, replacement, status } of result.mutants) {
      if (status === 'Ignored') continue;
      const [begin, end] = [location.start, location.end].map(({ line, column }) => starts[line] + column);
      mutants.push({
        id,
        file: name,
        line: location.start.line + 1,
        column: location.start.column + 1,
        operator: mutatorName,
        begin,
        before: content.slice(begin, end),
        after: replacement,
        statement: findStatement(statements, mutatorName, begin, end),
      });
    }
  }
  return { files, mutants };
}

// Return the ranges of lines to mutate. Long ones are data or minified, and take minutes.
function findShortLines(content) {
  const ranges = [];
  let isOpen = false;
  for (const [line, { length }] of content.split(LINE_END).entries()) {
    const end = { line, column: length };
    if (length > MAX_LINE_CHARACTERS) isOpen = false;
    else if (isOpen) ranges.at(-1).end = end;
    else isOpen = ranges.push({ start: { line, column: 0 }, end }) > 0;
  }
  return ranges;
}

// Return the line of the innermost statement around a mutant, or of the first one in a block; null without one.
function findStatement(statements, operator, begin, end) {
  if (operator === 'BlockStatement') {
    const [first] = statements.filter(([start]) => begin < start && start < end).sort((one, other) => one[0] - other[0]);
    if (first) return first[1];
  }
  let best = null;
  for (const one of statements) {
    if (one[0] <= begin && begin < one[2] && (best === null || one[0] >= best[0])) best = one;
  }
  return best && best[1];
}

// Move the content of the directory into another one, and return it.
function moveContent() {
  const original = path.join(START, '0');
  const entries = fs.readdirSync(START);
  fs.mkdirSync(original);
  for (const entry of entries) fs.renameSync(path.join(START, entry), path.join(original, entry));
  return original;
}

// Run calls of the program, each in a copy of the directory, and pass the results on in their order.
async function runCalls(job, program, args, tell) {
  const original = moveContent();
  const run = async (call, number) => {
    const place = path.join(START, String(number + 1));
    const work = path.join(place, 'work');
    fs.cpSync(original, work, { recursive: true, verbatimSymlinks: true });
    for (const [name, text] of Object.entries(call.files)) {
      fs.mkdirSync(path.dirname(path.join(work, name)), { recursive: true });
      fs.writeFileSync(path.join(work, name), text);
    }
    const [given, out, err, coverage] = ['in', 'out', 'err', 'coverage'].map((name) => path.join(place, name));
    fs.writeFileSync(given, call.stdin);
    const argv = [...job.options, program, ...args, ...call.arguments];
    const env = { ...process.env, NODE_V8_COVERAGE: coverage };
    const exitCode = await runOnce(argv, work, env, [given, out, err], job.timeout);
    const result = { exit_code: exitCode, stdout: encodeFile(out), ...readCoverage(coverage, work, job.files) };
    fs.rmSync(place, { recursive: true, force: true });
    return result;
  };
  const until = usedSeconds() + job.seconds;
  for (let start = 0; start < job.calls.length && usedSeconds() < until; start += PARALLEL_CALLS) {
    const some = job.calls.slice(start, start + PARALLEL_CALLS);
    for (const result of await Promise.all(some.map((call, index) => run(call, start + index)))) tell(result);
  }
}

// Return the processor time of the programs that this process has run, in seconds; else the time.
function usedSeconds() {
  try {
    const fields = fs.readFileSync('/proc/self/stat', 'latin1').split(') ').at(-1).split(' ');
    return (Number(fields[13]) + Number(fields[14])) / 100;
  } catch {
    return performance.now() / 1000;
  }
}

// Run the program and then each mutant in a copy of the directory, and pass each result on.
async function runMutants(job, program, args, tell) {
  const input = fs.readFileSync(0);
  const original = moveContent();
  let seconds = job.seconds;
  for (const [number, mutant] of [null, ...job.mutants].entries()) {
    const place = path.join(START, String(number + 1));
    const work = path.join(place, 'work');
    fs.cpSync(original, work, { recursive: true, verbatimSymlinks: true });
    // The ids of mutants are unique in their file only.
    for (const name of mutant === null ? Object.keys(job.instrumented) : [mutant.file]) {
      fs.writeFileSync(path.join(work, name), job.instrumented[name]);
    }
    const [given, out, err] = ['in', 'out', 'err'].map((name) => path.join(place, name));
    fs.writeFileSync(given, input);
    const env = { ...process.env };
    if (mutant !== null) env.__STRYKER_ACTIVE_MUTANT__ = mutant.id;
    const began = performance.now();
    const exitCode = await runOnce([...job.options, program, ...args], work, env, [given, out, err], seconds);
    const taken = (performance.now() - began) / 1000;
    if (mutant === null) seconds = Math.min(seconds, Math.max(MIN_SECONDS, SLOWDOWN * taken));
    const files = Object.fromEntries(job.read_back.map((name) => [name, encodeFile(path.join(work, name))]));
    tell({ exit_code: exitCode, stdout: encodeFile(out), stderr: encodeFile(err, work), files });
    fs.rmSync(place, { recursive: true, force: true });
  }
}

// Return the exit code of a run, the negative number of a signal, or null after the time limit.
async function runOnce(argv, cwd, env, [given, out, err], seconds) {
  const stdio = [fs.openSync(given), fs.openSync(out, 'w'), fs.openSync(err, 'w')];
  const own = child.spawn(process.execPath, argv, { cwd, env, stdio, detached: true });
  stdio.forEach((one) => fs.closeSync(one));
  const endAll = () => {
    try {
      process.kill(-own.pid, 'SIGKILL');
    } catch {
      // All have ended.
    }
  };
  let isOver = false;
  const timer = setTimeout(() => {
    isOver = true;
    endAll();
  }, 1000 * seconds);
  const [code, signal] = await new Promise((resolve) => own.once('exit', (...end) => resolve(end)));
  clearTimeout(timer);
  endAll();
  if (isOver) return null;
  return signal === null ? code : -os.constants.signals[signal];
}

// Return the beginning of a file in base64, with `.` for a directory; null for a missing file.
function encodeFile(name, directory) {
  let written;
  try {
    written = fs.readFileSync(name).subarray(0, MAX_OUTPUT_BYTES);
  } catch {
    return null;
  }
  if (directory) written = Buffer.from(written.toString('latin1').replaceAll(directory, '.'), 'latin1');
  return written.toString('base64');
}

async function main() {
  const [command, descriptor, program, ...args] = process.argv.slice(2);
  const report = Number(descriptor);
  const job = JSON.parse(fs.readFileSync(report, 'utf8'));
  let position = 0;
  const tell = (result) => {
    position += fs.writeSync(report, `${JSON.stringify(result)}\n`, position);
  };
  if (command === 'mutants' || command === 'calls') {
    fs.ftruncateSync(report);
    await (command === 'mutants' ? runMutants : runCalls)(job, program, args, tell);
    return;
  }
  const result = await {
    files: () => findFiles(program),
    lines: () => traceLines(job, program, args),
    instrument: () => instrument(job),
  }[command]();
  fs.ftruncateSync(report);
  tell(result);
}

main();
