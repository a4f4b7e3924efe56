"use strict";

const { annotator, project } = JSON.parse(document.getElementById("project").textContent);
const byId = (name) => document.getElementById(name);
const element = (tag, name = "", text = "") => Object.assign(document.createElement(tag), { className: name, textContent: text });

let doneSoFar = 0; // by this person, in earlier sessions too

// Messages around the task: waiting, progress, the banner.
function showWaiting(title, text) {
  byId("task").hidden = true;
  byId("waiting").hidden = false;
  byId("waiting-title").textContent = title;
  byId("waiting-text").textContent = text;
  announce(`${title}. ${text}`);
}

function announce(text) { byId("announce").textContent = text; }

function showProgress({ done, total }) {
  byId("progress").max = Math.max(1, total);
  byId("progress").value = done;
  byId("count").textContent = `${done} of ${total}`;
  doneSoFar = done;
  showUndo();
}

// Undo is enabled only while something can be taken back: an answer of this picture, or an earlier one.
function showUndo() {
  const begun = current !== null && Object.keys(current.answers).length > 0;
  byId("undo").disabled = !started || (doneSoFar === 0 && answered.length === 0 && !begun);
}

function showState(state, detail) {
  const kept = detail === 1 ? "1 answer is" : `${detail} answers are`;
  const words = {
    connected: "",
    away: `No connection to the server. ${detail ? `${kept} kept in this browser and sent as soon as it is back; you can go on.` : "Trying again."}`,
    ended: `Your session has ended: open your invitation link again.${detail ? ` ${kept} kept in this browser and will be sent then.` : ""}`,
    refused: `The server did not take an answer: ${detail}`,
    unkept: "This browser keeps no data for this page: press Save answers before you close it.",
  };
  byId("banner").textContent = words[state];
  byId("banner").hidden = state === "connected";
}
