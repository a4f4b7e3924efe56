"use strict";

// The order of the photos, decisions, undo and the keyboard.
let photos = [];
let place = -1;
let changed = false; // by strokes that are not decided on
let wasDraft = false; // whether strokes of an earlier session were there already
let busy = false; // while a photo is loaded or a region is found
let drafting = null; // the timer of strokes that wait to be kept
let encoding = 0; // drafts on their way to the queue
const decided = []; // places in the order of the decisions of this session
const VIEWS = ["tint", "cutout", "photo"];

const path = (what) => `/api/photos/${place}/${what}`;
const announce = (text) => { byId("announce").textContent = text; };

async function open(wanted) {
  if (wanted < 0 || wanted >= photos.length) return;
  await flush();
  [place, busy, changed] = [wanted, true, false];
  showPlace();
  try {
    const photo = new Image();
    photo.src = path("image");
    const [reply] = await Promise.all([fetch(path("mask")), photo.decode()]);
    if (!reply.ok) throw new Error((await reply.json()).detail);
    const mask = await decodeMask(await reply.blob());
    changed = wasDraft = reply.headers.get("X-Kind") === "draft";
    showNote(decodeURIComponent(reply.headers.get("X-Note")), reply.headers.get("X-Kind") === "doubtful");
    board.show(photo, mask);
  } catch (error) {
    showNote(`This photo cannot be shown: ${error.message}`, true);
  }
  busy = false;
  showPlace();
  if (place + 1 < photos.length) new Image().src = `/api/photos/${place + 1}/image`;
}

function showNote(text, doubtful) {
  byId("note").textContent = text;
  byId("note").classList.toggle("doubt", doubtful);
}

function showPlace() {
  const { id, label, verdict } = photos[place];
  byId("label").textContent = label;
  byId("name").textContent = id;
  byId("place").textContent = `${place + 1} of ${photos.length}`;
  byId("accept").classList.toggle("chosen", verdict === "accepted");
  byId("reject").classList.toggle("chosen", verdict === "rejected");
  const done = photos.filter((photo) => photo.verdict).length;
  byId("progress").max = photos.length;
  byId("progress").value = done;
  byId("count").textContent = `${done} of ${photos.length}`;
  byId("previous").disabled = place === 0;
  byId("next").disabled = place === photos.length - 1;
  byId("undo").disabled = board.undo.length === 0 && decided.length === 0;
  byId("accept").disabled = byId("reject").disabled = busy;
}

// Strokes are kept on the server a moment after the last one, so that nothing is lost where anything is killed.
function keepSoon() {
  changed = true;
  showNote("changed, not decided on yet", false);
  clearTimeout(drafting);
  drafting = setTimeout(flush, 400);
  showPlace();
}

async function flush() {
  if (drafting === null) return;
  clearTimeout(drafting);
  drafting = null;
  const target = path("draft");
  encoding += 1;
  server.change(target, await board.encode()).catch((error) => say(error.message));
  encoding -= 1;
}

async function decide(verdict) {
  if (busy) return;
  busy = true;
  clearTimeout(drafting);
  drafting = null;
  const here = place, before = photos[here].verdict, body = verdict === "accepted" && changed ? await board.encode() : null;
  const sent = server.change(path(verdict === "accepted" ? "accept" : "reject"), body);
  photos[here].verdict = verdict;
  decided.push(here);
  sent.catch((error) => { // refused: the decision does not stand
    photos[here].verdict = before;
    decided.splice(decided.lastIndexOf(here), 1);
    open(here).then(() => say(error.message));
  });
  announce(`${verdict}: ${photos[here].id}`);
  const open_ = [...photos.keys()].filter((at) => !photos[at].verdict);
  if (open_.length === 0) {
    busy = false;
    showPlace();
    say(""); // the last request may still be on its way
    await sent.then(() => say(`All ${photos.length} photos are decided. You can close this page; Ctrl-C ends the command.`), () => {});
    return;
  }
  await open(open_.find((at) => at > here) ?? open_[0]);
}

async function undo() {
  if (busy) return;
  if (board.undo.length) {
    board.mask = board.undo.pop();
    board.draw();
    if (board.undo.length === 0 && !wasDraft) {
      clearTimeout(drafting);
      drafting = null;
      changed = false;
      showNote("as it was", false);
      server.change(path("forget")).catch((error) => say(error.message));
      showPlace();
    } else keepSoon();
  } else if (decided.length) {
    const last = decided.pop();
    photos[last].verdict = "";
    await server.change(`/api/photos/${last}/reopen`).catch((error) => say(error.message));
    await open(last);
  }
}

board.onStroke = keepSoon;
board.onClick = async ({ x, y }, kind) => {
  if (busy || x < 0 || y < 0 || x >= board.width || y >= board.height) return;
  busy = true;
  showPlace();
  try {
    const reply = await post(`${path("region")}?x=${Math.floor(x)}&y=${Math.floor(y)}&kind=${kind}`, await board.encode());
    board.replace(await decodeMask(await reply.blob()));
    keepSoon();
  } catch (error) { say(`No region was found: ${error.message}`); }
  busy = false;
  showPlace();
};

function chooseTool(name) {
  board.tool = name;
  for (const button of document.querySelectorAll(".tool")) button.setAttribute("aria-pressed", button.dataset.tool === name);
}

function chooseView(name) {
  board.view = name;
  for (const button of document.querySelectorAll(".view")) button.setAttribute("aria-pressed", button.dataset.view === name);
  board.draw();
}

function resizeBrush(factor) {
  byId("size").value = board.brush = Math.min(120, Math.max(2, Math.round(board.brush * factor)));
}

const KEYS = {
  a: () => decide("accepted"), Enter: () => decide("accepted"), r: () => decide("rejected"), z: undo,
  p: () => chooseTool("paint"), e: () => chooseTool("erase"), g: () => chooseTool("grow"), c: () => chooseTool("cut"),
  v: () => chooseView(VIEWS[(VIEWS.indexOf(board.view) + 1) % VIEWS.length]),
  "[": () => resizeBrush(.8), "]": () => resizeBrush(1.25), 0: () => board.fit(),
  ArrowLeft: () => open(place - 1), ArrowRight: () => open(place + 1), "?": () => byId("help-sheet").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.metaKey || (event.ctrlKey && event.key !== "z") || byId("help-sheet").open) return;
  if (event.target.matches("input") && event.key.startsWith("Arrow")) return; // moves the slider
  if (event.target.matches("button") && event.key === "Enter") return; // presses the button
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (act) { event.preventDefault(); act(); }
});
for (const button of document.querySelectorAll(".tool")) button.addEventListener("click", () => chooseTool(button.dataset.tool));
for (const button of document.querySelectorAll(".view")) button.addEventListener("click", () => chooseView(button.dataset.view));
byId("size").addEventListener("input", () => { board.brush = Number(byId("size").value); });
byId("accept").addEventListener("click", () => decide("accepted"));
byId("reject").addEventListener("click", () => decide("rejected"));
byId("undo").addEventListener("click", undo);
byId("previous").addEventListener("click", () => open(place - 1));
byId("next").addEventListener("click", () => open(place + 1));
byId("help").addEventListener("click", () => byId("help-sheet").showModal());

chooseTool("paint");
chooseView("tint");
server.photos().then((all) => {
  photos = all;
  const first = photos.findIndex((photo) => !photo.verdict);
  open(first < 0 ? 0 : first);
});
