"use strict";

// All texts come from objects and handlers: they are set as text, never as HTML.
const by = (id) => document.getElementById(id);
const state = { page: 0, pages: 1, seen: "", timer: null, wanted: false, busy: false };

function make(name, text, className) {
  const element = document.createElement(name);
  if (text !== undefined && text !== null) element.textContent = String(text);
  if (className) element.className = className;
  return element;
}

function time(at) {
  if (at === null || at === undefined) return "";
  const date = new Date(at);
  const today = date.toDateString() === new Date().toDateString();
  return today ? date.toLocaleTimeString() : date.toLocaleString();
}

function duration(micros) {
  if (micros < 1000) return micros + " µs";
  if (micros < 1e6) return (micros / 1000).toFixed(1) + " ms";
  return (micros / 1e6).toFixed(1) + " s";
}

function until(at) {
  if (at === null || at === undefined) return "";
  const seconds = Math.round((at - Date.now()) / 1000);
  return seconds > 0 ? time(at) + " (in " + seconds + " s)" : time(at);
}

// A cell is a text, or an element, or [text, class].
function row(cells) {
  const line = make("tr");
  for (const cell of cells) {
    const box = make("td");
    if (cell instanceof Node) box.append(cell);
    else if (Array.isArray(cell)) { box.textContent = cell[0] ?? ""; box.className = cell[1] ?? ""; }
    else box.textContent = cell ?? "";
    line.append(box);
  }
  return line;
}

function table(into, titles, rows, empty) {
  if (rows.length === 0) {
    into.replaceChildren(make("p", empty, "hint"));
    return;
  }
  const head = make("tr");
  for (const title of titles) {
    const cell = make("th", title);
    cell.scope = "col";
    head.append(cell);
  }
  const all = make("table"), top = make("thead"), body = make("tbody");
  top.append(head);
  body.append(...rows.map(row));
  all.append(top, body);
  into.replaceChildren(all);
}

function facts(into, pairs) {
  const items = [];
  for (const [name, value, className] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    items.push(make("dt", name), make("dd", value, className));
  }
  into.replaceChildren(...items);
}

function link(uid, text) {
  const anchor = make("a", text);
  anchor.href = "#/objects/" + encodeURIComponent(uid);
  return anchor;
}

const named = (object) => (object.namespace ? object.namespace + "/" : "") + object.name;
const counted = (map) => Object.entries(map).filter(([, count]) => count > 0).map(([name, count]) => count + " " + name).join(", ");

// Replaces the children, and keeps the focus on the link that has it.
function replace(into, children) {
  const focused = into.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  into.replaceChildren(...children);
  if (focused) into.querySelector('a[href="' + CSS.escape(focused) + '"]')?.focus();
}

async function get(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(response.status === 404 ? "not found" : await response.text());
  return response.json();
}

function showOverview(overview) {
  by("edits").hidden = !overview.edits || !sessionStorage.getItem("token");
  by("operator").textContent = overview.operator + (overview.version ? " " + overview.version : "");
  let text = overview.paused ? "paused: " + overview.paused.message : overview.phase;
  if (!overview.ready) text += ", not ready: " + overview.problems.join("; ");
  text += " · " + overview.queue.waiting + " waiting, " + overview.queue.working + " in work";
  if (by("status").textContent !== text) by("status").textContent = text;
  showCounts(overview);
  facts(by("facts"), [
    ["Phase", overview.phase],
    ["Ready", overview.ready ? "yes" : "no: " + overview.problems.join("; "), overview.ready ? "fine" : "failing"],
    ["Paused", overview.paused ? overview.paused.reason + ": " + overview.paused.message : "no"],
    ["Leader", overview.leads ? "yes" : "no"],
    ["Other operators", overview.peers],
    ["Queue", overview.queue.waiting + " waiting, the first for " + overview.queue.oldest + " ms; " + overview.queue.working + " in work"],
    ["Runtime", overview.runtime],
    ["Objects left out", overview.left_out || ""],
  ]);
  table(by("watches"), ["Watch", "State", "Message"],
    overview.watches.map((watch) => [watch.name, [watch.state, watch.state], [watch.message, "message"]]), "There are none.");
  const handlers = [];
  for (const kind of overview.kinds) {
    for (const handler of kind.handlers) handlers.push([kind.kind, handler.id, handler.type, counted(handler.outcomes), handler.running || ""]);
  }
  table(by("handlers"), ["Kind", "Handler", "Type", "Attempts", "Running"], handlers, "There are none.");
  table(by("webhooks"), ["Kind", "Webhook", "Reviews"],
    overview.webhooks.map((webhook) => [webhook.kind, webhook.id, counted(webhook.verdicts)]), "There are none.");
}

function showCounts(overview) {
  const kinds = [...new Set([...overview.kinds.map((kind) => kind.kind), ...Object.keys(overview.states)])].sort();
  const boxes = kinds.map((kind) => {
    const box = make("div");
    const counts = overview.states[kind] || {};
    box.append(make("strong", kind), " ");
    if (Object.keys(counts).length === 0) box.append("no objects");
    for (const [name, count] of Object.entries(counts)) {
      const button = make("button", count + " " + name, name);
      button.type = "button";
      button.setAttribute("aria-label", "Show " + count + " " + name + " objects of " + kind);
      button.addEventListener("click", () => { by("kind").value = kind; by("state").value = name; filter(); });
      box.append(button);
    }
    return box;
  });
  const text = boxes.map((box) => box.textContent).join();
  if (by("counts").dataset.text !== text) {
    by("counts").dataset.text = text;
    by("counts").replaceChildren(...boxes);
  }
  const select = by("kind");
  for (const kind of kinds) {
    if (![...select.options].some((option) => option.value === kind)) select.append(new Option(kind, kind));
  }
}

async function showObjects() {
  const query = new URLSearchParams({ page: state.page, size: 50 });
  for (const name of ["search", "kind", "state"]) if (by(name).value) query.set(name, by(name).value);
  const found = await get("/api/objects?" + query);
  state.page = found.page;
  state.pages = Math.max(1, Math.ceil(found.total / found.size));
  const text = found.total === 1 ? "1 object" : found.total + " objects";
  if (by("found").textContent !== text) by("found").textContent = text;
  by("page-number").textContent = "Page " + (found.page + 1) + " of " + state.pages;
  by("previous").disabled = found.page === 0;
  by("next").disabled = found.page + 1 >= state.pages;
  replace(by("objects"), found.objects.map((object) => row([
    [object.state, object.state], object.kind, link(object.uid, named(object)), object.reason,
    object.attempts || "", [time(object.since), "time"], [until(object.until), "time"], [object.message, "message"],
  ])));
}

const calls = (list, withObject) => list.map((call) => {
  const cells = [[time(call.at), "time"], call.handler, call.attempt, [call.outcome, call.outcome], duration(call.duration)];
  if (withObject) cells.splice(1, 0, link(call.uid, call.object));
  return cells;
});

async function showCalls() {
  replace(by("calls"), calls(await get("/api/calls"), true).map(row));
}

async function showObject(uid) {
  let object;
  try {
    object = await get("/api/objects/" + encodeURIComponent(uid));
  } catch (error) {
    by("object-title").textContent = "This object is gone, or was never seen.";
    return;
  }
  by("object-title").textContent = object.kind + " " + named(object);
  facts(by("object-facts"), [
    ["State", object.state, object.state], ["Reason", object.reason], ["Since", time(object.since)],
    ["Next", until(object.until)], ["Message", object.message], ["API version", object.api_version], ["UID", object.uid],
  ]);
  table(by("object-handlers"), ["Handler", "Type", "Progress", "Attempts", "Since", "Next attempt", "Message"],
    object.handlers.map((it) => [it.id, it.type, [it.progress, it.progress], it.attempts, [time(it.since), "time"], [until(it.until), "time"], [it.message, "message"]]),
    "No handler was called.");
  table(by("object-background"), ["Handler", "Type", "State", "Next tick"],
    object.background.map((it) => [it.id, it.type, [it.state, it.state], [until(it.next_tick), "time"]]), "There are none.");
  const changes = [];
  for (const change of object.changes) {
    for (const it of change.changes) changes.push([[time(change.at), "time"], it.path, it.op, [it.old, "code"], [it.new, "code"]]);
  }
  table(by("object-changes"), ["Time", "Field", "Change", "Before", "After"], changes, "No update was handled.");
  table(by("object-calls"), ["Time", "Handler", "Attempt", "Outcome", "Duration"], calls(object.calls, false), "There were none.");
  table(by("object-events"), ["Time", "Type", "Reason", "Message"],
    object.events.map((it) => [[time(it.at), "time"], it.type, it.reason, [it.message, "message"]]), "None were posted.");
  table(by("object-lines"), ["Time", "Level", "Handler", "Message"],
    object.lines.map((it) => [[time(it.at), "time"], [it.level, it.level], it.handler, [it.message, "message"]]), "There are none.");
}

// The token is in the address that the operator logs, and stays in this tab.
function keepToken() {
  const found = location.hash.match(/[?&]token=([0-9a-f]+)/);
  if (!found) return;
  sessionStorage.setItem("token", found[1]);
  history.replaceState(null, "", "#/");
}

async function edit(action, body) {
  const uid = route().uid;
  const reads = action === "source";
  const response = await fetch("/api/objects/" + encodeURIComponent(uid) + "/" + action, {
    method: reads ? "GET" : "POST",
    headers: { "kopf-page-token": sessionStorage.getItem("token") ?? "" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

async function report(work, done) {
  try {
    await work();
    by("edited").textContent = done;
  } catch (error) {
    by("edited").textContent = error.message;
  }
}

async function openEditor() {
  const source = await edit("source");
  state.seen = source.spec;
  by("spec").value = source.spec;
  by("editor").hidden = false;
  by("spec").focus();
}

async function apply() {
  await edit("apply", { seen: state.seen, spec: by("spec").value });
  by("editor").hidden = true;
}

function listenForEdits() {
  by("edits").addEventListener("submit", (event) => event.preventDefault());
  by("retry").addEventListener("click", () => report(() => edit("retry"), "The handlers are due now."));
  by("edit").addEventListener("click", () => report(openEditor, "Change the spec, then apply it."));
  by("apply").addEventListener("click", () => report(apply, "The spec is changed."));
  by("delete").addEventListener("click", () => {
    if (confirm("Delete " + by("object-title").textContent + "?")) report(() => edit("delete"), "The object is being deleted.");
  });
}

function route() {
  const path = location.hash.replace(/^#/, "") || "/";
  if (path === "/calls") return { view: "calls", show: showCalls };
  if (path === "/operator") return { view: "operator", show: async () => {} };
  if (path.startsWith("/objects/")) {
    const uid = decodeURIComponent(path.slice("/objects/".length));
    return { view: "object", uid, show: () => showObject(uid) };
  }
  return { view: "objects", show: showObjects };
}

async function refresh() {
  if (state.busy) { state.wanted = true; return; }
  state.busy = true;
  state.wanted = false;
  try {
    showOverview(await get("/api/overview"));
    await route().show();
  } catch (error) {
    by("status").textContent = "The operator does not answer: " + error.message;
  } finally {
    state.busy = false;
    if (state.wanted) later();
  }
}

// Many changes cause one request a second.
function later() {
  if (state.timer === null) state.timer = setTimeout(() => { state.timer = null; refresh(); }, 1000);
}

function show() {
  const shown = route().view;
  by("editor").hidden = true;
  by("edited").textContent = "";
  for (const view of ["objects", "calls", "operator", "object"]) by("view-" + view).hidden = view !== shown;
  for (const view of ["objects", "calls", "operator"]) {
    const anchor = by("nav-" + view);
    if (view === shown) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  refresh();
}

function filter() {
  state.page = 0;
  refresh();
}

function turn(by) {
  state.page = Math.min(Math.max(0, state.page + by), state.pages - 1);
  refresh();
}

function key(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const types = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement.tagName);
  if (event.key === "Escape") {
    if (types) document.activeElement.blur();
    else location.hash = "#/";
    return;
  }
  if (types) return;
  if (event.key === "/") {
    event.preventDefault();
    if (route().view === "objects") by("search").focus();
    else { state.focus = "search"; location.hash = "#/"; }
  }
  if (event.key === "n" && route().view === "objects") turn(1);
  if (event.key === "p" && route().view === "objects") turn(-1);
}

function begin() {
  keepToken();
  listenForEdits();
  by("filters").addEventListener("submit", (event) => event.preventDefault());
  by("search").addEventListener("input", filter);
  by("kind").addEventListener("change", filter);
  by("state").addEventListener("change", filter);
  by("previous").addEventListener("click", () => turn(-1));
  by("next").addEventListener("click", () => turn(1));
  by("skip").addEventListener("click", (event) => { event.preventDefault(); by("main").focus(); });
  document.addEventListener("keydown", key);
  window.addEventListener("hashchange", () => { show(); by(state.focus || "main").focus(); state.focus = null; });
  show();
  const changes = new EventSource("/api/stream");
  changes.addEventListener("change", later);
  changes.onerror = () => { by("status").textContent = "Disconnected; connecting again…"; };
  changes.onopen = later;
}

begin();
