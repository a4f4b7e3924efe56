"use strict";

// The offline package: tasks come from tasks.js, answers are kept in this browser and saved to a file.
class OfflineClient {
  constructor({ onState, onProgress }) {
    this.package = window.counterfoilPackage;
    this.name = `counterfoil-offline/${this.package.signature}`;
    this.given = this.readStored();
    this.onState = onState;
    this.onProgress = onProgress;
    document.getElementById("download").addEventListener("click", () => this.download());
  }

  isWaiting() { return false; }

  get answered() { return new Set(this.given.map((row) => row.task)); }

  async next(count) {
    const done = this.answered;
    const open = this.package.tasks.filter((task) => !done.has(task.task));
    this.reportProgress();
    return { tasks: open.slice(0, count), finished: open.length === 0 };
  }

  answer(task, answers, seconds) {
    this.given.push({ task: task.task, answers, seconds, time: new Date().toISOString() });
    this.store();
    this.reportProgress();
  }

  async undo() {
    const last = this.given[this.given.length - 1];
    if (!last) return null;
    this.given = this.given.filter((row) => row.task !== last.task);
    this.store();
    this.reportProgress();
    return { ...this.package.tasks.find((task) => task.task === last.task), answers: last.answers };
  }

  reportProgress() { this.onProgress({ done: this.answered.size, total: this.package.tasks.length }); }

  readStored() {
    try {
      return JSON.parse(localStorage.getItem(this.name)) || [];
    } catch {
      return [];
    }
  }

  store() {
    try {
      localStorage.setItem(this.name, JSON.stringify(this.given));
    } catch {
      this.onState("unkept", this.given.length);
    }
  }

  download() {
    const { ticket, signature } = this.package;
    const content = JSON.stringify({ format: "counterfoil-offline-answers", ticket, signature, answers: this.given }, null, 1);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type: "application/json" }));
    link.download = `answers-${ticket.annotator.replace(/[^\w.-]+/g, "_")}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
}

const createClient = (wiring) => new OfflineClient(wiring);
