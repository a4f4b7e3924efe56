"use strict";

const { project } = JSON.parse(document.getElementById("project").textContent);
const csrf = document.querySelector('meta[name="csrf"]').content;
const byId = (name) => document.getElementById(name);
const element = (tag, name = "", text = "") => Object.assign(document.createElement(tag), { className: name, textContent: text });
const questionOf = new Map(project.questions.map((question) => [question.id, question]));
const EVERY_SECONDS = 15;

// Requests to the server.
async function ask(address, body) {
  const options = body === undefined ? {} : {
    method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf },
  };
  const reply = await fetch(address, { ...options, credentials: "same-origin", signal: AbortSignal.timeout(30000) });
  const content = await reply.json().catch(() => ({}));
  if (!reply.ok) throw Object.assign(new Error(String(content.detail || content.error || reply.statusText)), { status: reply.status });
  return content;
}

function warn(text) {
  byId("banner").textContent = text;
  byId("banner").hidden = text === "";
}

async function change(address, body, done) {
  try {
    const reply = await ask(address, body);
    byId("announce").textContent = done;
    await refresh();
    return reply;
  } catch (error) {
    warn(`That did not work: ${error.message}`);
    return null;
  }
}

async function refresh() {
  try {
    show(await ask("/api/admin/summary"));
    warn("");
  } catch (error) {
    const ended = error.status === 401 || error.status === 403;
    warn(ended ? "Your session has ended: open your link again." : "No connection to the server; trying again.");
  }
}

// Progress and agreement.
let shownOnce = false;

function show(summary) {
  const { progress, decisions } = summary;
  if (!shownOnce && summary.annotators.length === 0) byId("main").prepend(byId("people")); // nothing happens before somebody is invited
  shownOnce = true; // afterwards nothing moves while somebody fills in the form
  byId("progress").max = Math.max(1, progress.total);
  byId("progress").value = progress.done;
  byId("lead").textContent = `${progress.done} of ${progress.total} answers are in; ${progress.finished} of ${progress.pictures} pictures have all of theirs.`;
  const figures = [["kept", decisions.kept], ["dropped", decisions.dropped], ["undecided", decisions.undecided],
    ["too few answers", decisions.too_few],
    ["disagreements", summary.disagreement_count], ["annotators", summary.annotators.length]];
  byId("figures").replaceChildren(...figures.map(([name, value]) => {
    const figure = element("div");
    figure.append(element("dt", "", name), element("dd", "", String(value)));
    return figure;
  }));
  rows("agreement", project.questions.map((question) => agreementRow(question, summary.agreement[question.id])), "No question yet.");
  rows("annotators", summary.annotators.map(annotatorRow), "Nobody is invited yet: the form below makes a link.");
  showDisagreements(summary.disagreements, summary.disagreement_count);
}

function rows(name, filled, empty) {
  const none = element("tr");
  const cell = element("td", "none", empty);
  cell.colSpan = 9;
  none.append(cell);
  const existing = new Map([...byId(name).children].map((line) => [line.cells[0].textContent, line]));
  const wanted = filled.length ? filled : [none];
  updateChildren(byId(name), wanted.map((line) => updateRow(existing.get(line.cells[0].textContent), line)));
}

// Keeps the existing row, with new cells only where something changed.
function updateRow(existing, fresh) {
  if (!existing || existing.cells.length !== fresh.cells.length) return fresh;
  existing.className = fresh.className;
  updateChildren(existing, [...fresh.cells].map((cell, place) => (existing.cells[place].isEqualNode(cell) ? existing.cells[place] : cell)));
  return existing;
}

// Elements that stay are not removed and put back, so a button keeps its focus and a press that has begun.
function updateChildren(parent, wanted) {
  [...parent.children].filter((old) => !wanted.includes(old)).forEach((old) => old.remove());
  wanted.forEach((child, place) => { if (parent.children[place] !== child) parent.insertBefore(child, parent.children[place] || null); });
}

function row(heading, cells, name = "") {
  const line = element("tr", name);
  const first = element("th", "", heading);
  first.scope = "row";
  line.append(first, ...cells);
  return line;
}

const exists = (value) => value !== null && value !== undefined;
const fixed = (value, digits) => value.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−"); // no negative zero

function measured(values, name, digits) {
  const cell = element("td", "number", exists(values[name]) ? fixed(values[name], digits) : "–");
  const [low, high] = [values[`${name}_low`], values[`${name}_high`]];
  if (exists(low) && exists(high)) cell.append(element("small", "", `[${fixed(low, digits)}, ${fixed(high, digits)}]`));
  return cell;
}

function agreementRow(question, values = {}) {
  const cells = [element("td", "number", exists(values.pictures) ? String(values.pictures) : "0"), measured(values, "percent_agreement", 1),
    ...["cohen_kappa", "fleiss_kappa", "krippendorff_alpha"].map((name) => measured(values, name, 2))];
  return row(question.text.replaceAll("{class}", "…"), cells);
}

// People.
function share(value, count) {
  const cell = element("td", "number", exists(value) ? `${Math.round(100 * value)} %` : "–");
  if (count) cell.append(element("small", "", `of ${count}`));
  return cell;
}

function annotatorRow(person) {
  const status = [person.excluded ? `left out: ${person.reason || "by an administrator"}` : "counts", person.revoked ? "link revoked" : ""];
  const actions = element("td");
  const list = element("div", "actions");
  list.append(
    action(person.excluded ? "Count again" : "Leave out", person, () => leaveOut(person)),
    action("Revoke", person, () => revoke(person), person.revoked),
    action("New link", person, () => invite(person.name, "annotator")),
  );
  actions.append(list);
  const seconds = exists(person.median_seconds) ? `${person.median_seconds.toFixed(1)} s` : "–";
  return row(person.name, [element("td", "number", String(person.done)), element("td", "number", seconds), share(person.control_accuracy, person.controls),
    share(person.repeat_consistency, person.repeats), element("td", "status", status.filter(Boolean).join(", ")), actions], person.excluded ? "out" : "");
}

function action(words, person, work, disabled = false) {
  const button = element("button", "plain", words);
  button.type = "button";
  button.disabled = disabled;
  button.setAttribute("aria-label", `${words}: ${person.name}`);
  button.addEventListener("click", work);
  return button;
}

function leaveOut(person) {
  if (person.excluded) {
    change("/api/admin/exclude", { annotator: person.name, excluded: false, reason: "" }, `${person.name} counts again`);
    return;
  }
  const reason = window.prompt(`Why are the answers of ${person.name} left out? The pictures go to other people.`, "");
  if (reason !== null) change("/api/admin/exclude", { annotator: person.name, excluded: true, reason }, `${person.name} is left out`);
}

function revoke(person) {
  if (window.confirm(`Stop the link and every session of ${person.name}? The answers stay.`)) {
    change("/api/admin/revoke", { annotator: person.name }, `The link and sessions of ${person.name} are stopped`);
  }
}

async function invite(name, role) {
  const reply = await change("/api/admin/invite", { name, role }, `Link made for ${name}`);
  if (!reply) return;
  byId("invited").hidden = false;
  byId("invited-name").textContent = name;
  byId("copied").textContent = "";
  byId("link").value = reply.link;
  byId("link").focus();
  byId("link").select();
}

byId("invite").addEventListener("submit", (event) => {
  event.preventDefault();
  invite(byId("invite-name").value.trim(), byId("invite-role").value).then(() => { byId("invite-name").value = ""; });
});

byId("copy").addEventListener("click", async () => {
  byId("link").select();
  try {
    await navigator.clipboard.writeText(byId("link").value);
  } catch {
    document.execCommand("copy"); // an unencrypted page has no clipboard of its own
  }
  byId("copied").textContent = "copied";
});

// Disagreements, a screenful at a time.
let shown = 24;
const places = new Map(); // a decided card keeps its place until the page is loaded again
byId("more").addEventListener("click", () => { shown += 24; refresh(); });

function showDisagreements(found, count) {
  const open = found.filter((disagreement) => disagreement.questions.some((question) => !(question in disagreement.adjudicated)));
  byId("disagreements-note").textContent = found.length === 0
    ? "Nobody disagrees so far."
    : `${open.length} of ${found.length} wait for your answer, which then counts instead of theirs.`
      + (count > found.length ? ` ${count - found.length} more appear when these are decided.` : "");
  const cards = byId("disagreements");
  const kept = new Map([...cards.children].map((card) => [card.dataset.key, card]));
  byId("more").hidden = found.length <= shown;
  found.filter((disagreement) => !places.has(disagreement.id)).forEach((disagreement) => places.set(disagreement.id, places.size));
  const inPlace = found.slice().sort((first, second) => places.get(first.id) - places.get(second.id));
  updateChildren(cards, inPlace.slice(0, shown).map((disagreement) => {
    const key = JSON.stringify([disagreement.id, disagreement.answers, disagreement.adjudicated]);
    return kept.get(key) || disagreementCard(disagreement, key); // unchanged cards stay, with the focus in them
  }));
}

function disagreementCard(disagreement, key) {
  const card = element("article", "card");
  card.dataset.key = key;
  const image = element("img");
  image.loading = "lazy";
  image.src = disagreement.picture;
  image.alt = `${disagreement.class_name}: the picture in question`;
  const body = element("div");
  body.append(element("h3", "", disagreement.class_name), ...disagreement.questions.map((id) => choices(disagreement, id)));
  card.append(image, body);
  return card;
}

function votes(disagreement, id) {
  const list = element("ul", "votes");
  Object.entries(disagreement.answers).filter(([, answers]) => id in answers).forEach(([name, answers]) => {
    const item = element("li", "", name);
    item.append(element("b", "", answers[id]));
    list.append(item);
  });
  return list;
}

function choices(disagreement, id) {
  const question = questionOf.get(id);
  const field = element("fieldset");
  field.append(element("legend", "", question.text.replaceAll("{class}", disagreement.class_name)));
  field.append(votes(disagreement, id));
  const buttons = element("div", "choices");
  question.answers.forEach((answer) => {
    const button = element("button", "plain", answer);
    button.type = "button";
    button.setAttribute("aria-pressed", String(disagreement.adjudicated[id] === answer));
    button.addEventListener("click", () => change("/api/admin/adjudicate", { id: disagreement.id, question: id, answer }, `${disagreement.class_name}: ${answer}`));
    buttons.append(button);
  });
  field.append(buttons);
  return field;
}

refresh();
setInterval(() => { if (!document.hidden) refresh(); }, EVERY_SECONDS * 1000);
