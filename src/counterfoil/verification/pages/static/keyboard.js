"use strict";

// Keyboard shortcuts, the help that lists them, and the start button.
function focusAnswer(step) {
  const buttons = [...byId("questions").children[current.active].querySelectorAll(".answers button")];
  const here = buttons.indexOf(document.activeElement);
  const next = here === -1 ? (step < 0 ? buttons.length - 1 : 0) : (here + step + buttons.length) % buttons.length;
  buttons[next].focus();
}

function moveQuestion(step) {
  const inAnswers = document.activeElement.closest(".answers") !== null;
  activate(Math.min(current.task.questions.length - 1, Math.max(0, current.active + step)));
  if (inAnswers) { document.activeElement.blur(); focusAnswer(0); }
}

function toggleZoom() {
  if (zoom.isOpen) zoom.close();
  else zoom.open(upcoming.picturesOf(current.task).edited.image);
}

function keepEarlier() {
  const asked = current.task.questions[current.active];
  if (asked.id in current.earlier) choose(current.active, current.earlier[asked.id]);
}

const taskKeys = {
  z: undo, Backspace: undo, " ": toggleZoom, Enter: keepEarlier,
  ArrowUp: () => moveQuestion(-1), ArrowDown: () => moveQuestion(1), ArrowLeft: () => focusAnswer(-1), ArrowRight: () => focusAnswer(1),
  "+": () => zoom.isOpen && zoom.enlarge(1.5), "=": () => zoom.isOpen && zoom.enlarge(1.5), "-": () => zoom.isOpen && zoom.enlarge(1 / 1.5),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || byId("help-sheet").open) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const onButton = (key === " " || key === "Enter") && document.activeElement.closest("button, a") !== null && !zoom.isOpen;
  if (onButton) return; // the focused button takes them
  if (key === "?") { event.preventDefault(); openHelp(); return; }
  if (!started) return;
  if (!current) { if (key === "z" || key === "Backspace") undo(); return; }
  const answer = questionOf.get(current.task.questions[current.active].id).keys.get(key);
  if (!answer && !taskKeys[key]) return;
  event.preventDefault();
  if (answer) choose(current.active, answer);
  else taskKeys[key]();
});

function openHelp() {
  zoom.close();
  byId("help-sheet").showModal();
}

function listKeys() {
  const answers = [...new Set(project.questions.flatMap((question) => question.answers.map((answer) => `${keyFor(answer, keysOf(question.answers))}|${answer}`)))];
  const rows = [...answers.map((pair) => pair.split("|")), ["1 2 3", "answers in their order"], ["← →", "step through the answers, Enter chooses"],
    ["↑ ↓", "step through the questions"], ["Z", "take back the last answer (or Backspace)"], ["Enter", "after taking back: keep what was answered"],
    ["Space", "enlarge the picture; then drag, wheel or + and −"], ["?", "this help"]];
  byId("keys").replaceChildren(...rows.flatMap(([keys, meaning]) => {
    const term = element("dt");
    term.append(...keys.split(" ").map((key) => element("kbd", "", key)));
    return [term, element("dd", "", meaning)];
  }));
}

byId("undo").addEventListener("click", (event) => { if (event.detail > 0) byId("undo").blur(); undo(); });
byId("help").addEventListener("click", openHelp);
byId("start").addEventListener("click", () => {
  started = true;
  byId("start").blur(); // a hidden button keeps the focus for a while, and would take Enter and the space bar
  byId("intro").hidden = true;
  if (upcoming.length > 0) advance();
  else { showWaiting("Loading", "The first pictures are on their way."); refill(); }
});

listKeys();
byId("start").focus();
refill();
