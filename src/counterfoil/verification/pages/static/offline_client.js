"use strict";

// The desk of the offline package: tasks out of tasks.js, answers into this browser, from there into a file.
class OfflineDesk {
  constructor({ onState, onProgress }) {
    this.box = window.counterfoilPackage;
    this.name = `counterfoil-offline/${this.box.signature}`;
    this.given = this.kept();
    this.onState = onState;
    this.onProgress = onProgress;
    document.getElementById("download").addEventListener("click", () => this.download());
  }

  isWaiting() { return false; }

  get answered() { return new Set(this.given.map((row) => row.task)); }

  async next(count) {
    const done = this.answered;
    const open = this.box.tasks.filter((task) => !done.has(task.task));
    this.tell();
    return { tasks: open.slice(0, count), finished: open.length === 0 };
  }

  answer(task, answers, seconds) {
    this.given.push({ task: task.task, answers, seconds, time: new Date().toISOString() });
    this.keep();
    this.tell();
  }

  async undo() {
    const last = this.given[this.given.length - 1];
    if (!last) return null;
    this.given = this.given.filter((row) => row.task !== last.task);
    this.keep();
    this.tell();
    return { ...this.box.tasks.find((task) => task.task === last.task), answers: last.answers };
  }

  tell() { this.onProgress({ done: this.answered.size, total: this.box.tasks.length }); }

  kept() {
    try {
      return JSON.parse(localStorage.getItem(this.name)) || [];
    } catch {
      return [];
    }
  }

  keep() {
    try {
      localStorage.setItem(this.name, JSON.stringify(this.given));
    } catch {
      this.onState("unkept", this.given.length);
    }
  }

  download() {
    const { ticket, signature } = this.box;
    const content = JSON.stringify({ format: "counterfoil-offline-answers", ticket, signature, answers: this.given }, null, 1);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type: "application/json" }));
    link.download = `answers-${ticket.annotator.replace(/[^\w.-]+/g, "_")}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
}

const makeDesk = (wiring) => new OfflineDesk(wiring);
