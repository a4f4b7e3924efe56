"use strict";

// Requests to the server. Those that change something are sent one after another, and again until they arrive.
const token = document.querySelector("meta[name=csrf]").content;
const byId = (name) => document.getElementById(name);

function say(text) {
  byId("banner").textContent = text;
  byId("banner").hidden = text === "";
}

async function post(path, body) {
  const headers = { "X-CSRF-Token": token, ...(body ? { "Content-Type": "image/png" } : {}) };
  const reply = await fetch(path, { method: "POST", headers, body });
  if (reply.ok) return reply;
  const detail = await reply.json().then((content) => content.detail, () => reply.statusText);
  throw Object.assign(new Error(detail), { refused: true });
}

const server = {
  waiting: [], // {path, body, done}
  sending: false,

  async photos() { return (await fetch("/api/photos")).json(); },

  // A change; the promise is kept once the server has it. A later draft of the same photo replaces one that waits.
  change(path, body = null) {
    if (path.endsWith("/draft")) this.waiting = this.waiting.filter((one, place) => place === 0 || one.path !== path);
    return new Promise((done, failed) => {
      this.waiting.push({ path, body, done, failed });
      this.send();
    });
  },

  async send() {
    if (this.sending) return;
    this.sending = true;
    while (this.waiting.length) {
      const { path, body, done, failed } = this.waiting[0];
      try {
        await post(path, body);
        this.waiting.shift();
        say("");
        done();
      } catch (error) {
        if (error.refused) {
          this.waiting.shift();
          failed(error);
        } else {
          say("The server does not answer. Your changes are kept in this page and sent as soon as it is back.");
          await new Promise((again) => setTimeout(again, 1000));
        }
      }
    }
    this.sending = false;
  },
};

window.addEventListener("beforeunload", (event) => { if (server.waiting.length) event.preventDefault(); });
