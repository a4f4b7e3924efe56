"use strict";

const { project } = JSON.parse(document.getElementById("project").textContent);
const csrf = document.querySelector('meta[name="csrf"]').content;
const byId = (name) => document.getElementById(name);
const made = (tag, name = "", text = "") => Object.assign(document.createElement(tag), { className: name, textContent: text });
const questionOf = new Map(project.questions.map((question) => [question.id, question]));
const EVERY_SECONDS = 15;

// Talking to the server.
async function ask(address, body) {
  const told = body === undefined ? {} : {
    method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf },
  };
  const reply = await fetch(address, { ...told, credentials: "same-origin", signal: AbortSignal.timeout(30000) });
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
  if (!shownOnce && summary.annotators.length === 0) byId("main").prepend(byId("people")); // nothing goes on without them
  shownOnce = true; // nothing moves under the hand of whoever has begun to invite
  byId("progress").max = Math.max(1, progress.total);
  byId("progress").value = progress.done;
  byId("lead").textContent = `${progress.done} of ${progress.total} answers are in; ${progress.finished} of ${progress.pictures} pictures have all of theirs.`;
  const figures = [["kept", decisions.kept], ["dropped", decisions.dropped], ["undecided", decisions.undecided],
    ["too few answers", decisions.too_few],
    ["disagreements", summary.disagreement_count], ["annotators", summary.annotators.length]];
  byId("figures").replaceChildren(...figures.map(([name, value]) => {
    const figure = made("div");
    figure.append(made("dt", "", name), made("dd", "", String(value)));
    return figure;
  }));
  rows("agreement", project.questions.map((question) => agreementRow(question, summary.agreement[question.id])), "No question yet.");
  rows("annotators", summary.annotators.map(annotatorRow), "Nobody is invited yet: the form below makes a link.");
  showDisagreements(summary.disagreements, summary.disagreement_count);
}

function rows(name, filled, empty) {
  const none = made("tr");
  const cell = made("td", "none", empty);
  cell.colSpan = 9;
  none.append(cell);
  const there = new Map([...byId(name).children].map((line) => [line.cells[0].textContent, line]));
  const wanted = filled.length ? filled : [none];
  settle(byId(name), wanted.map((line) => renewed(there.get(line.cells[0].textContent), line)));
}

// The row that is there, with new cells only where something changed.
function renewed(there, fresh) {
  if (!there || there.cells.length !== fresh.cells.length) return fresh;
  there.className = fresh.className;
  settle(there, [...fresh.cells].map((cell, place) => (there.cells[place].isEqualNode(cell) ? there.cells[place] : cell)));
  return there;
}

// What stays is not taken out and put back: a button keeps the focus, and a press on it that has begun.
function settle(parent, wanted) {
  [...parent.children].filter((old) => !wanted.includes(old)).forEach((old) => old.remove());
  wanted.forEach((one, place) => { if (parent.children[place] !== one) parent.insertBefore(one, parent.children[place] || null); });
}

function row(heading, cells, name = "") {
  const line = made("tr", name);
  const first = made("th", "", heading);
  first.scope = "row";
  line.append(first, ...cells);
  return line;
}

const exists = (value) => value !== null && value !== undefined;
const fixed = (value, digits) => value.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−"); // no negative zero

function measured(values, name, digits) {
  const cell = made("td", "number", exists(values[name]) ? fixed(values[name], digits) : "–");
  const [low, high] = [values[`${name}_low`], values[`${name}_high`]];
  if (exists(low) && exists(high)) cell.append(made("small", "", `[${fixed(low, digits)}, ${fixed(high, digits)}]`));
  return cell;
}

function agreementRow(question, values = {}) {
  const cells = [made("td", "number", exists(values.pictures) ? String(values.pictures) : "0"), measured(values, "percent_agreement", 1),
    ...["cohen_kappa", "fleiss_kappa", "krippendorff_alpha"].map((name) => measured(values, name, 2))];
  return row(question.text.replaceAll("{class}", "…"), cells);
}

// People.
function share(value, count) {
  const cell = made("td", "number", exists(value) ? `${Math.round(100 * value)} %` : "–");
  if (count) cell.append(made("small", "", `of ${count}`));
  return cell;
}

function annotatorRow(person) {
  const standing = [person.excluded ? `left out: ${person.reason || "by an administrator"}` : "counts", person.revoked ? "link revoked" : ""];
  const actions = made("td");
  const list = made("div", "actions");
  list.append(
    action(person.excluded ? "Let count" : "Leave out", person, () => leaveOut(person)),
    action("Revoke", person, () => revoke(person), person.revoked),
    action("New link", person, () => invite(person.name, "annotator")),
  );
  actions.append(list);
  const seconds = exists(person.median_seconds) ? `${person.median_seconds.toFixed(1)} s` : "–";
  return row(person.name, [made("td", "number", String(person.done)), made("td", "number", seconds), share(person.control_accuracy, person.controls),
    share(person.repeat_consistency, person.repeats), made("td", "standing", standing.filter(Boolean).join(", ")), actions], person.excluded ? "out" : "");
}

function action(words, person, work, disabled = false) {
  const button = made("button", "plain", words);
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
    change("/api/admin/revoke", { annotator: person.name }, `${person.name} is let in no more`);
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
const places = new Map(); // a card that was decided stays where it is until the page is loaded again
byId("more").addEventListener("click", () => { shown += 24; refresh(); });

function showDisagreements(found, count) {
  const open = found.filter((one) => one.questions.some((question) => !(question in one.adjudicated)));
  byId("disagreements-note").textContent = found.length === 0
    ? "Nobody disagrees so far."
    : `${open.length} of ${found.length} wait for your word, which then counts instead of the people's answers.`
      + (count > found.length ? ` ${count - found.length} more come when these are settled.` : "");
  const cards = byId("disagreements");
  const kept = new Map([...cards.children].map((card) => [card.dataset.key, card]));
  byId("more").hidden = found.length <= shown;
  found.filter((one) => !places.has(one.id)).forEach((one) => places.set(one.id, places.size));
  const inPlace = found.slice().sort((first, second) => places.get(first.id) - places.get(second.id));
  settle(cards, inPlace.slice(0, shown).map((one) => {
    const key = JSON.stringify([one.id, one.answers, one.adjudicated]);
    return kept.get(key) || disagreementCard(one, key); // unchanged cards stay, with the focus in them
  }));
}

function disagreementCard(one, key) {
  const card = made("article", "card");
  card.dataset.key = key;
  const image = made("img");
  image.loading = "lazy";
  image.src = one.picture;
  image.alt = `${one.class_name}: the picture in question`;
  const body = made("div");
  body.append(made("h3", "", one.class_name), ...one.questions.flatMap((id) => [votes(one, id), choices(one, id)]));
  card.append(image, body);
  return card;
}

function votes(one, id) {
  const list = made("ul", "votes");
  Object.entries(one.answers).filter(([, answers]) => id in answers).forEach(([name, answers]) => {
    const item = made("li", "", name);
    item.append(made("b", "", answers[id]));
    list.append(item);
  });
  return list;
}

function choices(one, id) {
  const question = questionOf.get(id);
  const field = made("fieldset");
  field.append(made("legend", "", question.text.replaceAll("{class}", one.class_name)));
  const buttons = made("div", "choices");
  question.answers.forEach((answer) => {
    const button = made("button", "plain", answer);
    button.type = "button";
    button.setAttribute("aria-pressed", String(one.adjudicated[id] === answer));
    button.addEventListener("click", () => change("/api/admin/adjudicate", { id: one.id, question: id, answer }, `${one.class_name}: ${answer}`));
    buttons.append(button);
  });
  field.append(buttons);
  return field;
}

refresh();
setInterval(() => { if (!document.hidden) refresh(); }, EVERY_SECONDS * 1000);
