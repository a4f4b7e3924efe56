"use strict";

// The tasks that come next, their pictures loaded and decoded ahead.
class UpcomingTasks {
  constructor() {
    this.tasks = [];
    this.pictures = new Map(); // task id -> {edited, original}, each an <img> with its promise
  }

  get length() { return this.tasks.length; }

  holds(id) { return this.tasks.some((task) => task.task === id); }

  add(task) {
    this.tasks.push(task);
    this.picturesOf(task);
  }

  putBack(task) {
    this.tasks = this.tasks.filter((other) => other.task !== task.task);
    this.tasks.unshift(task);
    this.picturesOf(task);
  }

  take() { return this.tasks.shift(); }

  picturesOf(task) {
    if (!this.pictures.has(task.task)) {
      this.pictures.set(task.task, {
        edited: UpcomingTasks.load(task.picture, `${task.class_name}: the picture to judge`),
        original: task.original ? UpcomingTasks.load(task.original, `${task.class_name}: the original photo`) : null,
      });
    }
    return this.pictures.get(task.task);
  }

  // Frees the pictures of tasks answered long ago.
  forgetAllBut(ids) {
    const wanted = new Set([...ids, ...this.tasks.map((task) => task.task)]);
    [...this.pictures.keys()].filter((id) => !wanted.has(id)).forEach((id) => this.pictures.delete(id));
  }

  isReady(id) {
    const pictures = this.pictures.get(id);
    return Boolean(pictures) && pictures.edited.ready && (pictures.original === null || pictures.original.ready);
  }

  static load(address, description) {
    const image = new Image();
    image.alt = description;
    image.decoding = "sync"; // decoded ahead: shown in the frame in which it is put on the page
    image.draggable = false;
    const picture = { image, ready: false, lost: false };
    const attempt = (left) => {
      image.src = address;
      return image.decode().then(() => { picture.ready = true; }, () => {
        if (left === 0) { picture.lost = true; return undefined; }
        return new Promise((resolve) => { setTimeout(resolve, 2000); }).then(() => {
          image.removeAttribute("src");
          return attempt(left - 1);
        });
      });
    };
    picture.loaded = attempt(5);
    return picture;
  }
}
