"use strict";

// Sort: a heading's button orders the rows by its column, numbers by value, "no number" always last.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => heading.firstElementChild.addEventListener("click", () => {
    const direction = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    headings.forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((first, second) => compare(first.cells[column], second.cells[column], direction));
    table.tBodies[0].append(...rows);
  }));
}

function compare(first, second, direction) {
  if (first.dataset.value === undefined) return direction * first.textContent.localeCompare(second.textContent, "en");
  const [a, b] = [Number(first.dataset.value), Number(second.dataset.value)];
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
  return direction * (a - b);
}

// Filter: a verdict shows if its model is chosen, a card if a verdict shows, a shelf if its attribute is chosen and a card shows.
const attribute = document.getElementById("filter-attribute");
const model = document.getElementById("filter-model");

function applyFilters() {
  let shown = 0;
  for (const shelf of document.querySelectorAll(".shelf")) {
    const wanted = attribute.value === "" || shelf.dataset.attribute === attribute.value;
    let inShelf = 0;
    for (const card of shelf.querySelectorAll(".card")) {
      const verdicts = [...card.querySelectorAll(".verdict")];
      verdicts.forEach((verdict) => { verdict.hidden = model.value !== "" && verdict.dataset.model !== model.value; });
      card.hidden = verdicts.every((verdict) => verdict.hidden);
      inShelf += card.hidden ? 0 : 1;
    }
    shelf.hidden = !wanted || inShelf === 0;
    shown += shelf.hidden ? 0 : inShelf;
  }
  const all = document.querySelectorAll(".card").length;
  document.getElementById("filter-count").textContent = `${shown} of ${all} pictures`;
}

if (attribute) {
  attribute.closest(".filters").hidden = false;
  attribute.addEventListener("change", applyFilters);
  model.addEventListener("change", applyFilters);
  applyFilters();
}

// Print: what is folded away on the screen is on the paper.
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
