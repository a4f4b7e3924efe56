"use strict";

// Sends answers to the server. An answer is kept in this browser until the server has acknowledged it; every answer has
// a key of its own, so that one that is sent twice counts once.
class ServerClient {
  constructor({ owner, onState, onProgress }) {
    this.csrf = document.querySelector('meta[name="csrf"]').content;
    this.prefix = `counterfoil-answer/${owner}/`;
    this.queue = this.readStored();
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
    await this.flush(); // the server would give out again what it does not know as answered
    const before = this.acknowledged;
    const reply = await this.post("/api/next", { count: count + this.queue.length });
    // Otherwise it is older than the progress of a later answer, or may count one that is still in the queue.
    if (before === this.acknowledged && !this.sending) this.reportProgress(reply.progress);
    return reply;
  }

  answer(task, answers, seconds) {
    const entry = { at: Date.now(), key: randomKey(), task, answers, seconds };
    this.queue.push(entry);
    this.store(entry);
    this.reportProgress(this.progress);
    this.reportStored();
    this.flush();
  }

  // Takes the last answer back: out of the queue where it was not sent yet, else by the server.
  async undo() {
    await this.flush();
    const unsent = this.queue.pop();
    if (unsent) {
      this.removeStored(unsent);
      this.reportProgress(this.progress);
      this.reportStored();
      return { ...unsent.task, answers: unsent.answers };
    }
    const reply = await this.post("/api/undo", {});
    if (reply.progress) this.reportProgress(reply.progress);
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
        this.acknowledge(entry, reply.progress);
      } catch (error) {
        if (error.kind !== "refused") return;
        this.acknowledge(entry, this.progress);
        this.onState("refused", error.message);
      }
    }
  }

  acknowledge(entry, progress) {
    this.queue = this.queue.filter((other) => other !== entry);
    this.acknowledged += 1;
    this.removeStored(entry);
    this.reportProgress(progress);
  }

  reportProgress(progress) {
    this.progress = progress;
    if (progress) this.onProgress({ done: Math.min(progress.done + this.queue.length, progress.total), total: progress.total });
  }

  // At once, not with the next attempt: the banner shows how many answers are kept in this browser now.
  reportStored() {
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
      throw this.retryLater();
    }
    if (reply.status === 403 && await this.renewToken()) return this.post(address, body);
    if (reply.status === 401 || reply.status === 403) throw this.setState("ended", "ended");
    if (reply.status === 429 || reply.status >= 500) throw this.retryLater();
    if (!reply.ok) throw Object.assign(new Error(await reason(reply)), { kind: "refused" });
    this.failures = 0;
    this.setState("connected", "");
    return reply.json();
  }

  // The link opened again in another tab begins a new session, whose cookie this tab shares: fetch its token too.
  async renewToken() {
    const reply = fetch("/annotate", { credentials: "same-origin", signal: AbortSignal.timeout(20000) });
    const page = new DOMParser().parseFromString(await reply.then((page) => page.text()).catch(() => ""), "text/html");
    const [content, token] = [page.getElementById("project"), page.querySelector('meta[name="csrf"]')];
    if (!content || JSON.parse(content.textContent).annotator !== annotator || token.content === this.csrf) return false;
    this.csrf = token.content;
    return true;
  }

  // Tries again by itself, at first soon, then every quarter of a minute.
  retryLater() {
    this.failures += 1;
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.flush(), Math.min(15000, 500 * 2 ** this.failures));
    return this.setState("away", "away");
  }

  setState(state, kind) {
    const changed = state !== this.state || state !== "connected";
    this.state = state;
    if (changed) this.onState(state, this.queue.length);
    return Object.assign(new Error(kind), { kind });
  }

  readStored() {
    try {
      const names = Object.keys(localStorage).filter((name) => name.startsWith(this.prefix));
      return names.map((name) => JSON.parse(localStorage.getItem(name))).sort((a, b) => a.at - b.at);
    } catch {
      return []; // a browser that forbids storage: the answers are kept in this page alone
    }
  }

  store(entry) {
    try { localStorage.setItem(this.prefix + entry.key, JSON.stringify(entry)); } catch { /* as above */ }
  }

  removeStored(entry) {
    try { localStorage.removeItem(this.prefix + entry.key); } catch { /* as above */ }
  }
}

async function reason(reply) {
  try {
    const content = await reply.json();
    return String(content.detail || content.error || reply.statusText);
  } catch {
    return reply.statusText;
  }
}

// Not randomUUID, which browsers offer on encrypted pages only.
function randomKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const createClient = (wiring) => new ServerClient(wiring);
