"use strict";

// The photo, the mask over it, strokes with one finger or the mouse, and moving with two fingers or the wheel.
const TINT = [225, 60, 160, 120]; // of the object, red green blue alpha
const EDGE = [255, 255, 255, 255];
const MOST_UNDO = 40;

const board = {
  width: 1, height: 1, mask: new Uint8Array(1), undo: [],
  view: "tint", tool: "paint", brush: 24,
  scale: 1, left: 0, top: 0, // of the plane within the stage
  pointers: new Map(), stroke: null, pinch: null,
  onStroke: () => {}, onClick: () => {},

  show(photo, mask) {
    [this.width, this.height, this.mask, this.undo] = [photo.naturalWidth, photo.naturalHeight, mask, []];
    for (const canvas of [byId("photo"), byId("overlay")]) [canvas.width, canvas.height] = [this.width, this.height];
    byId("photo").getContext("2d").drawImage(photo, 0, 0);
    this.fit();
    this.draw();
  },

  fit() {
    const { clientWidth, clientHeight } = byId("stage");
    this.scale = Math.min((clientWidth - 24) / this.width, (clientHeight - 24) / this.height);
    this.left = (clientWidth - this.width * this.scale) / 2;
    this.top = (clientHeight - this.height * this.scale) / 2;
    this.place();
  },

  place() {
    byId("plane").style.transform = `translate(${this.left}px, ${this.top}px) scale(${this.scale})`;
  },

  remember() {
    this.undo.push(this.mask.slice());
    if (this.undo.length > MOST_UNDO) this.undo.shift();
  },

  replace(mask) { this.remember(); this.mask = mask; this.draw(); },

  // Everything, or the rows and columns that a stroke touched.
  draw(area = { left: 0, top: 0, right: this.width, bottom: this.height }) {
    const left = Math.max(0, Math.floor(area.left)), top = Math.max(0, Math.floor(area.top));
    const wide = Math.min(this.width, Math.ceil(area.right)) - left, high = Math.min(this.height, Math.ceil(area.bottom)) - top;
    if (wide <= 0 || high <= 0) return;
    const context = byId("overlay").getContext("2d");
    byId("plane").classList.toggle("cutout", this.view === "cutout");
    const pixels = this.view === "cutout" ? byId("photo").getContext("2d").getImageData(left, top, wide, high) : new ImageData(wide, high);
    for (let row = 0; row < high; row++) {
      for (let column = 0; column < wide; column++) {
        const at = (row + top) * this.width + column + left, to = 4 * (row * wide + column);
        if (this.view === "cutout") {
          if (!this.mask[at]) pixels.data[to + 3] = 0;
        } else if (this.view === "tint" && this.mask[at]) {
          pixels.data.set(this.isEdge(at, column + left, row + top) ? EDGE : TINT, to);
        }
      }
    }
    context.putImageData(pixels, left, top);
  },

  isEdge(at, column, row) {
    const { mask, width, height } = this;
    return (column > 0 && !mask[at - 1]) || (column < width - 1 && !mask[at + 1])
      || (row > 0 && !mask[at - width]) || (row < height - 1 && !mask[at + width]);
  },

  // Where on the photo a pointer is.
  locate(event) {
    const box = byId("stage").getBoundingClientRect();
    return { x: (event.clientX - box.left - this.left) / this.scale, y: (event.clientY - box.top - this.top) / this.scale };
  },

  get radius() { return Math.max(.5, this.brush / 2 / this.scale); }, // the brush is as large as it looks, at any zoom

  line(from, to) {
    const steps = Math.max(1, Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / Math.max(1, this.radius / 3)));
    for (let step = 0; step <= steps; step++) {
      this.dab(from.x + (to.x - from.x) * step / steps, from.y + (to.y - from.y) * step / steps);
    }
    const reach = this.radius + 2;
    this.draw({ left: Math.min(from.x, to.x) - reach, top: Math.min(from.y, to.y) - reach,
      right: Math.max(from.x, to.x) + reach, bottom: Math.max(from.y, to.y) + reach });
  },

  dab(x, y) {
    const value = this.tool === "paint" ? 255 : 0, reach = this.radius;
    for (let row = Math.max(0, Math.floor(y - reach)); row <= Math.min(this.height - 1, y + reach); row++) {
      for (let column = Math.max(0, Math.floor(x - reach)); column <= Math.min(this.width - 1, x + reach); column++) {
        if ((column + .5 - x) ** 2 + (row + .5 - y) ** 2 <= reach * reach) this.mask[row * this.width + column] = value;
      }
    }
  },

  zoom(factor, x, y) {
    const wanted = Math.min(40, Math.max(.05, this.scale * factor)), change = wanted / this.scale;
    [this.left, this.top, this.scale] = [x - (x - this.left) * change, y - (y - this.top) * change, wanted];
    this.place();
  },

  async encode() {
    const canvas = Object.assign(document.createElement("canvas"), { width: this.width, height: this.height });
    const pixels = new ImageData(this.width, this.height);
    for (let at = 0; at < this.mask.length; at++) pixels.data.set([this.mask[at], this.mask[at], this.mask[at], 255], 4 * at);
    canvas.getContext("2d").putImageData(pixels, 0, 0);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  },
};

// The mask of a PNG: one byte for each pixel, 255 on the object.
async function decodeMask(blob) {
  const picture = await createImageBitmap(blob);
  const canvas = Object.assign(document.createElement("canvas"), { width: picture.width, height: picture.height });
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0);
  const { data } = context.getImageData(0, 0, picture.width, picture.height);
  return Uint8Array.from({ length: data.length / 4 }, (_, at) => (data[4 * at] >= 128 ? 255 : 0));
}

const stage = byId("stage");
stage.addEventListener("pointerdown", (event) => {
  if (event.button > 0) return;
  stage.setPointerCapture(event.pointerId);
  board.pointers.set(event.pointerId, event);
  if (board.pointers.size === 2) {
    if (board.stroke) { board.mask = board.undo.pop(); board.stroke = null; board.draw(); } // a second finger: it was no stroke
    board.pinch = measurePinch();
  } else if (board.tool === "grow" || board.tool === "cut") {
    board.stroke = null;
  } else {
    board.remember();
    board.stroke = board.locate(event);
    board.line(board.stroke, board.stroke);
  }
});
stage.addEventListener("pointermove", (event) => {
  showCursor(event);
  if (!board.pointers.has(event.pointerId)) return;
  board.pointers.set(event.pointerId, event);
  if (board.pinch && board.pointers.size === 2) {
    const now = measurePinch();
    board.left += now.x - board.pinch.x;
    board.top += now.y - board.pinch.y;
    board.zoom(now.length / board.pinch.length, now.x, now.y);
    board.pinch = now;
  } else if (board.stroke) {
    const here = board.locate(event);
    board.line(board.stroke, here);
    board.stroke = here;
  }
});
for (const name of ["pointerup", "pointercancel"]) {
  stage.addEventListener(name, (event) => {
    const known = board.pointers.delete(event.pointerId);
    if (board.pinch) { if (board.pointers.size === 0) board.pinch = null; return; }
    if (board.stroke) { board.stroke = null; board.onStroke(); return; }
    if (known && name === "pointerup" && (board.tool === "grow" || board.tool === "cut")) board.onClick(board.locate(event), board.tool);
  });
}
stage.addEventListener("pointerleave", () => { byId("cursor").hidden = true; });
stage.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = stage.getBoundingClientRect();
  board.zoom(Math.exp(-event.deltaY / 500), event.clientX - box.left, event.clientY - box.top);
}, { passive: false });
window.addEventListener("resize", () => board.fit());

function measurePinch() {
  const box = stage.getBoundingClientRect();
  const [first, second] = [...board.pointers.values()];
  return {
    x: (first.clientX + second.clientX) / 2 - box.left, y: (first.clientY + second.clientY) / 2 - box.top,
    length: Math.max(1, Math.hypot(first.clientX - second.clientX, first.clientY - second.clientY)),
  };
}

function showCursor(event) {
  const cursor = byId("cursor"), box = stage.getBoundingClientRect();
  cursor.hidden = event.pointerType === "touch" || !["paint", "erase"].includes(board.tool);
  cursor.style.width = cursor.style.height = `${board.brush}px`;
  cursor.style.transform = `translate(${event.clientX - box.left - board.brush / 2}px, ${event.clientY - box.top - board.brush / 2}px)`;
}
