"use strict";

const AHEAD = 8; // tasks fetched ahead, their pictures decoded
const upcoming = new UpcomingTasks();
const zoom = new Zoom(byId("zoom"), byId("zoom-plane"), byId("zoom-close"));
const client = createClient({ owner: `${project.name}/${annotator}`, onState: showState, onProgress: showProgress });
const questionOf = new Map(project.questions.map((question) => [question.id, { ...question, keys: keysOf(question.answers) }]));
const answered = []; // ids, the latest last
let current = null; // {task, answers, earlier, active, since, away}
let started = false;
let filling = false;
let undoing = false;
let refillTimer = 0;

// The loop: fetch tasks ahead, show one, take its answers, go on.
async function refill() {
  if (filling) return;
  filling = true;
  try {
    const reply = await client.next(AHEAD + (current ? 1 : 0));
    reply.tasks.filter(isNew).forEach((task) => upcoming.add(task));
    if (started && !current) advance();
    if (!current && upcoming.length === 0) {
      if (reply.finished) showFinished();
      else refillLater(0.3); // all of them were answered while the reply was on its way
    }
  } catch (error) {
    if (!error.kind) throw error;
    if (!current && started) showWaiting("Waiting for the server", "The next pictures come as soon as it can be reached again.");
    if (error.kind !== "ended") refillLater(2);
  } finally {
    filling = false;
  }
}

function isNew(task) {
  return !upcoming.holds(task.task) && !client.isWaiting(task.task) && !answered.includes(task.task)
    && !(current && current.task.task === task.task);
}

function refillLater(seconds) {
  clearTimeout(refillTimer);
  refillTimer = setTimeout(refill, seconds * 1000);
}

function showFinished() {
  if (!started) return;
  showWaiting("That was all. Thank you!", byId("download")
    ? "Now press Save answers and send the file back. Undo still takes back your last answer."
    : "All your answers are saved and you may close this page. Undo still takes back your last answer.");
  refillLater(60); // somebody else's pictures may come back
}

function advance() {
  const task = upcoming.take();
  current = null;
  if (task) show(task, {});
  else showWaiting("Loading", "The next pictures are on their way.");
  if (upcoming.length < AHEAD / 2 + 1) refill();
}

function show(task, earlier) {
  const byKeyboard = document.activeElement && document.activeElement.closest(".answers") !== null;
  current = { task, answers: {}, earlier, active: 0, since: null, away: 0 };
  zoom.close();
  byId("waiting").hidden = true;
  byId("intro").hidden = true;
  byId("task").hidden = false;
  byId("class-name").textContent = task.class_name;
  byId("definition").textContent = task.definition || "";
  byId("definition").hidden = !task.definition;
  showReferences(task);
  showPictures(task);
  byId("questions").replaceChildren(...task.questions.map(fieldset));
  activate(0);
  if (byKeyboard) focusAnswer(0);
  announce(`${task.class_name}. ${task.questions[0].text}`);
  showUndo();
}

// The questions of one task.
function fieldset(asked, place) {
  const question = questionOf.get(asked.id);
  const field = element("fieldset", "question");
  field.append(element("legend", "", asked.text));
  if (question.help) field.append(element("p", "help", question.help));
  const answers = element("div", "answers");
  question.answers.forEach((answer) => answers.append(answerButton(place, question, answer)));
  field.append(answers);
  return field;
}

function answerButton(place, question, answer) {
  const button = element("button", "", answer);
  button.type = "button";
  button.dataset.answer = answer;
  const key = keyFor(answer, question.keys);
  button.append(element("kbd", "", key));
  button.lastChild.setAttribute("aria-hidden", "true");
  button.setAttribute("aria-keyshortcuts", key);
  button.setAttribute("aria-pressed", String(current.earlier[question.id] === answer));
  button.addEventListener("click", (event) => {
    if (event.detail > 0) button.blur(); // by mouse or finger: the space bar must not give the answer again
    choose(place, answer);
  });
  return button;
}

function activate(place) {
  current.active = place;
  [...byId("questions").children].forEach((field, other) => field.classList.toggle("active", other === place));
}

function choose(place, answer) {
  if (undoing) return; // the picture shown is about to change: the answer would be to another one
  const asked = current.task.questions[place];
  current.answers[asked.id] = answer;
  byId("questions").children[place].querySelectorAll("button").forEach((button) => {
    button.setAttribute("aria-pressed", String(button.dataset.answer === answer));
  });
  const open = current.task.questions.findIndex((question) => !(question.id in current.answers));
  if (open === -1) { submit(); return; }
  showUndo();
  const byKeyboard = document.activeElement.closest(".answers") !== null;
  activate(open);
  if (byKeyboard) focusAnswer(0);
  announce(current.task.questions[open].text);
}

function submit() {
  const { task, answers } = current;
  client.answer(task, answers, secondsSpent());
  answered.push(task.task);
  showUndo();
  upcoming.forgetAllBut(answered.slice(-4));
  advance();
}

// Back by one question, else by one picture.
async function undo() {
  if (!started || undoing) return;
  const given = current ? current.task.questions.filter((question) => question.id in current.answers) : [];
  if (given.length > 0) {
    const last = given[given.length - 1];
    delete current.answers[last.id];
    const place = current.task.questions.indexOf(last);
    byId("questions").children[place].querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", "false"));
    activate(place);
    showUndo();
    return;
  }
  undoing = true;
  try {
    reopen(await client.undo());
  } catch (error) {
    if (!error.kind) throw error;
    if (error.kind === "refused") announce("There is nothing to take back.");
  } finally {
    undoing = false;
  }
}

function reopen(task) {
  if (!task) { announce("There is nothing to take back."); return; }
  if (current) upcoming.putBack(current.task);
  const place = answered.lastIndexOf(task.task);
  if (place !== -1) answered.splice(place, 1);
  upcoming.tasks = upcoming.tasks.filter((other) => other.task !== task.task);
  show(task, task.answers || {});
  announce(`Taken back: ${task.class_name}. ${task.questions[0].text}`);
}
