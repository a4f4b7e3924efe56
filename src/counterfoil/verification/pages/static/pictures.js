"use strict";

// The pictures of a task, and the time that they are looked at.
function showPictures(task) {
  const { edited, original } = upcoming.picturesOf(task);
  const shown = original ? [[original, "Original photo"], [edited, "Picture to judge"]] : [[edited, "Picture to judge"]];
  byId("pictures").replaceChildren(...shown.map(([picture, caption]) => {
    const frame = element("button", "frame");
    frame.type = "button";
    frame.setAttribute("aria-label", `Enlarge: ${picture.image.alt}`);
    frame.append(picture.image);
    frame.addEventListener("click", () => zoom.open(picture.image));
    const figure = element("figure");
    figure.append(element("figcaption", "", caption), frame);
    shape(frame, picture.image);
    picture.loaded.then(() => {
      shape(frame, picture.image);
      if (picture.lost) frame.append(element("span", "lost", "This picture could not be loaded. Load the page again, or answer unsure."));
    });
    return figure;
  }));
  startClock(task, edited);
}

// Photos of the class asked about, to compare with; they stay where the class stays.
let referencesShown = "";
function showReferences(task) {
  const addresses = task.references || [];
  byId("references").hidden = addresses.length === 0;
  if (referencesShown === addresses.join(" ")) return;
  referencesShown = addresses.join(" ");
  byId("references").replaceChildren(...addresses.map((address, place) => {
    const frame = element("button", "reference");
    const image = element("img");
    image.alt = `${task.class_name}: reference photo ${place + 1} of ${addresses.length}`;
    image.src = address;
    frame.type = "button";
    frame.setAttribute("aria-label", `Enlarge: ${image.alt}`);
    frame.append(image);
    frame.addEventListener("click", () => { frame.blur(); zoom.open(image); });
    return frame;
  }));
}

function shape(frame, image) {
  if (image.naturalWidth > 0) frame.style.setProperty("--shape", image.naturalWidth / image.naturalHeight);
}

// Time counts from when the picture can be seen, and only while the page is looked at.
function startClock(task, picture) {
  const start = () => { if (current && current.task === task && current.since === null) current.since = performance.now(); };
  if (picture.ready) start();
  else picture.loaded.then(start);
}

let hiddenSince = null;
document.addEventListener("visibilitychange", () => {
  if (document.hidden) hiddenSince = performance.now();
  else if (hiddenSince !== null) {
    if (current && current.since !== null) current.away += performance.now() - Math.max(hiddenSince, current.since);
    hiddenSince = null;
  }
});

function secondsSpent() {
  if (current.since === null) return 0;
  return Math.round(Math.max(0, performance.now() - current.since - current.away)) / 1000;
}
