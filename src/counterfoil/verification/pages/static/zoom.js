"use strict";

// A picture over the whole window: wheel, pinch or + and - enlarge, dragging moves it.
class Zoom {
  constructor(dialog, plane, closer) {
    this.dialog = dialog;
    this.plane = plane;
    this.pointers = new Map();
    closer.addEventListener("click", () => this.close());
    plane.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.enlarge(Math.exp(-event.deltaY / 400), event.clientX, event.clientY);
    }, { passive: false });
    plane.addEventListener("pointerdown", (event) => this.touch(event));
    plane.addEventListener("pointermove", (event) => this.drag(event));
    ["pointerup", "pointercancel"].forEach((name) => plane.addEventListener(name, (event) => this.lift(event)));
  }

  get isOpen() { return this.dialog.open; }

  open(image) {
    const copy = image.cloneNode();
    this.plane.replaceChildren(copy);
    this.image = copy;
    [this.scale, this.x, this.y] = [1, 0, 0];
    this.pointers.clear();
    this.dialog.showModal();
  }

  close() { if (this.isOpen) this.dialog.close(); }

  // The point under the fingers stays where it is.
  enlarge(factor, atX = window.innerWidth / 2, atY = window.innerHeight / 2) {
    const scale = Math.min(12, Math.max(1, this.scale * factor));
    this.x = atX - (atX - this.x) * scale / this.scale;
    this.y = atY - (atY - this.y) * scale / this.scale;
    this.scale = scale;
    this.place();
  }

  place() {
    const within = (value, size) => Math.min(0, Math.max(size - size * this.scale, value));
    this.x = within(this.x, window.innerWidth);
    this.y = within(this.y, window.innerHeight);
    this.image.style.transform = `translate(${this.x}px, ${this.y}px) scale(${this.scale})`;
  }

  touch(event) {
    this.plane.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    this.moved = this.pointers.size > 1;
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const here = [event.clientX, event.clientY];
    const other = [...this.pointers].find(([id]) => id !== event.pointerId);
    if (other) {
      const apart = (point) => Math.hypot(point[0] - other[1][0], point[1] - other[1][1]);
      this.enlarge(apart(here) / Math.max(1, apart(before)), (here[0] + other[1][0]) / 2, (here[1] + other[1][1]) / 2);
    } else {
      this.x += here[0] - before[0];
      this.y += here[1] - before[1];
      this.place();
    }
    this.moved = this.moved || Math.hypot(here[0] - before[0], here[1] - before[1]) > 2;
    this.pointers.set(event.pointerId, here);
  }

  lift(event) {
    this.pointers.delete(event.pointerId);
    if (this.pointers.size > 0 || this.moved || event.type === "pointercancel") return;
    if (this.scale > 1) this.close();
    else this.enlarge(3, event.clientX, event.clientY);
  }
}
