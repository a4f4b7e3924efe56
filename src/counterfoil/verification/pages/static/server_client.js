"use strict";

// The way to the server. An answer is kept in this browser until the server has acknowledged it; every answer carries
// a key of its own, so that one that is sent twice counts once.
class ServerDesk {
  constructor({ owner, onState, onProgress }) {
    this.csrf = document.querySelector('meta[name="csrf"]').content;
    this.prefix = `counterfoil-answer/${owner}/`;
    this.queue = this.kept();
    this.onState = onState;
    this.onProgress = onProgress;
    this.progress = null;
    this.acknowledged = 0;
    this.state = "connected";
    this.failures = 0;
    window.addEventListener("online", () => this.flush());
    window.addEventListener("beforeunload", (event) => { if (this.queue.length > 0 && this.state !== "connected") event.preventDefault(); });
  }

  isWaiting(id) { return this.queue.some((entry) => entry.task.task === id); }

  async next(count) {
    await this.flush(); // what the server does not know as answered it would give out again
    const before = this.acknowledged;
    const reply = await this.post("/api/next", { count: count + this.queue.length });
    // Else it is older than what an answer has told since, or may count one that is still in the queue.
    if (before === this.acknowledged && !this.sending) this.tell(reply.progress);
    return reply;
  }

  answer(task, answers, seconds) {
    const entry = { at: Date.now(), key: randomKey(), task, answers, seconds };
    this.queue.push(entry);
    this.keep(entry);
    this.tell(this.progress);
    this.tellKept();
    this.flush();
  }

  // The last answer taken back: out of the queue where it has not left this browser, else by the server.
  async undo() {
    await this.flush();
    const unsent = this.queue.pop();
    if (unsent) {
      this.drop(unsent);
      this.tell(this.progress);
      this.tellKept();
      return { ...unsent.task, answers: unsent.answers };
    }
    const reply = await this.post("/api/undo", {});
    if (reply.progress) this.tell(reply.progress);
    return reply.task || null;
  }

  flush() {
    this.sending = this.sending || this.sendAll().finally(() => { this.sending = null; });
    return this.sending;
  }

  async sendAll() {
    while (this.queue.length > 0 && this.state !== "ended") {
      const entry = this.queue[0];
      const { key, answers, seconds } = entry;
      try {
        const reply = await this.post("/api/answer", { task: entry.task.task, answers, seconds, key });
        this.settle(entry, reply.progress);
      } catch (error) {
        if (error.kind !== "refused") return;
        this.settle(entry, this.progress);
        this.onState("refused", error.message);
      }
    }
  }

  settle(entry, progress) {
    this.queue = this.queue.filter((other) => other !== entry);
    this.acknowledged += 1;
    this.drop(entry);
    this.tell(progress);
  }

  tell(progress) {
    this.progress = progress;
    if (progress) this.onProgress({ done: Math.min(progress.done + this.queue.length, progress.total), total: progress.total });
  }

  // Said at once, not with the next attempt: the banner's number is what lies in this browser now.
  tellKept() {
    if (this.state !== "connected") this.onState(this.state, this.queue.length);
  }

  async post(address, body) {
    let reply;
    try {
      reply = await fetch(address, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-CSRF-Token": this.csrf },
        body: JSON.stringify(body),
        credentials: "same-origin",
        signal: AbortSignal.timeout(20000),
      });
    } catch {
      throw this.away();
    }
    if (reply.status === 403 && await this.renewed()) return this.post(address, body);
    if (reply.status === 401 || reply.status === 403) throw this.become("ended", "ended");
    if (reply.status === 429 || reply.status >= 500) throw this.away();
    if (!reply.ok) throw Object.assign(new Error(await reason(reply)), { kind: "refused" });
    this.failures = 0;
    this.become("connected", "");
    return reply.json();
  }

  // Whoever opens the link again in another tab has a new session there, and the cookie is its: so must the token be.
  async renewed() {
    const asked = fetch("/annotate", { credentials: "same-origin", signal: AbortSignal.timeout(20000) });
    const page = new DOMParser().parseFromString(await asked.then((reply) => reply.text()).catch(() => ""), "text/html");
    const [told, token] = [page.getElementById("project"), page.querySelector('meta[name="csrf"]')];
    if (!told || JSON.parse(told.textContent).annotator !== annotator || token.content === this.csrf) return false;
    this.csrf = token.content;
    return true;
  }

  // Tried again by itself, at first soon, then every quarter of a minute.
  away() {
    this.failures += 1;
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.flush(), Math.min(15000, 500 * 2 ** this.failures));
    return this.become("away", "away");
  }

  become(state, kind) {
    const changed = state !== this.state || state !== "connected";
    this.state = state;
    if (changed) this.onState(state, this.queue.length);
    return Object.assign(new Error(kind), { kind });
  }

  kept() {
    try {
      const names = Object.keys(localStorage).filter((name) => name.startsWith(this.prefix));
      return names.map((name) => JSON.parse(localStorage.getItem(name))).sort((a, b) => a.at - b.at);
    } catch {
      return []; // a browser that forbids storage: the answers live in this page alone
    }
  }

  keep(entry) {
    try { localStorage.setItem(this.prefix + entry.key, JSON.stringify(entry)); } catch { /* as above */ }
  }

  drop(entry) {
    try { localStorage.removeItem(this.prefix + entry.key); } catch { /* as above */ }
  }
}

async function reason(reply) {
  try {
    const told = await reply.json();
    return String(told.detail || told.error || reply.statusText);
  } catch {
    return reply.statusText;
  }
}

// Not randomUUID: browsers have that on encrypted pages only.
function randomKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const makeDesk = (wiring) => new ServerDesk(wiring);
