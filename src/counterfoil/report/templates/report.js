"use strict";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const byId = (name) => document.getElementById(name);

// What needs this script is hidden without it.
all(".filters, .copying, .attributes, .show-model").forEach((part) => { part.hidden = false; });

// Sort: a heading's button orders the rows by its column, numbers by value, "no number" always last.
for (const table of all("table.sortable")) {
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

// Copy: the table as it stands, tab by tab and line by line, numbers unrounded, for a spreadsheet.
for (const button of all("button.copy")) {
  button.addEventListener("click", async () => {
    const rows = [...byId(button.dataset.table).rows];
    const text = rows.map((row) => [...row.cells].filter((cell) => !cell.hidden).map(plain).join("\t")).join("\n") + "\n";
    await put(text);
    button.nextElementSibling.textContent = `${rows.length - 1} rows copied`;
  });
}

function plain(cell) {
  const value = cell.dataset.value === undefined ? cell.textContent : cell.dataset.value;
  return value.trim().replace(/\s+/g, " ");
}

async function put(text) {
  try {
    await navigator.clipboard.writeText(text);
    return;
  } catch {
    // an older browser, or one that forbids it here: the old way below
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

// Models and attributes: a switch hides one everywhere; the lanes of the chart of drops close ranks.
const modelSwitches = all(".show-model");
modelSwitches.forEach((box) => box.addEventListener("change", () => {
  const same = modelSwitches.filter((other) => other.dataset.m === box.dataset.m);
  same.forEach((other) => { other.checked = box.checked; });
  all(`.attribute-chart [data-m="${box.dataset.m}"], #drops [data-m="${box.dataset.m}"], #accuracies [data-m="${box.dataset.m}"], #dose g[data-m="${box.dataset.m}"], #side-by-side [data-m="${box.dataset.m}"]`)
    .filter((part) => !part.classList.contains("show-model"))
    .forEach((part) => part.toggleAttribute("hidden", !box.checked));
  all(".forest .edit").forEach(closeRanks);
}));

function closeRanks(edit) {
  const lane = Number(edit.dataset.lane);
  let shown = 0;
  const values = all(".values > li", edit);
  values.forEach((value, place) => {
    const mark = edit.querySelector(`.track [data-m="${value.dataset.m}"]`);
    if (mark) mark.setAttribute("transform", `translate(0 ${(shown - place) * lane})`);
    shown += value.hidden ? 0 : 1;
  });
  if (values.length) edit.querySelector(".track").setAttribute("height", shown * lane);
}

all(".show-attribute").forEach((box) => box.addEventListener("change", () => {
  all(".forest .group").filter((group) => group.dataset.attribute === box.value)
    .forEach((group) => { group.hidden = !box.checked; });
}));

// Scatter: one panel at a time.
const scatter = [byId("scatter-attribute"), byId("scatter-kind")];
if (scatter[0]) {
  scatter.forEach((choice) => choice.addEventListener("change", () => all(".panel").forEach((panel) => {
    panel.hidden = panel.dataset.attribute !== scatter[0].value || panel.dataset.kind !== scatter[1].value;
  })));
}

// Gallery: an answer shows if its model and outcome are chosen, a card if its class is and an answer shows, a section if a card shows.
const filters = ["attribute", "model", "class", "outcome"].map((name) => byId(`filter-${name}`));

function applyFilters() {
  const [attribute, model, kind, outcome] = filters.map((choice) => choice.value);
  const fits = (wanted, value) => wanted === "" || wanted === value;
  let count = 0;
  for (const section of all(".gallery-section")) {
    let shownCards = 0;
    for (const card of all(".card", section)) {
      const answers = all(".answer", card);
      answers.forEach((answer) => { answer.hidden = !fits(model, answer.dataset.m) || !fits(outcome, answer.dataset.outcome); });
      const flipped = answers.some((answer) => answer.dataset.outcome === "flipped" && fits(model, answer.dataset.m));
      card.hidden = !fits(kind, card.dataset.class) || answers.every((answer) => answer.hidden) || (outcome === "kept" && flipped);
      shownCards += card.hidden ? 0 : 1;
    }
    section.hidden = !fits(attribute, section.dataset.attribute) || shownCards === 0;
    count += section.hidden ? 0 : shownCards;
  }
  byId("filter-count").textContent = `${count} of ${all(".card").length} pictures`;
}

if (filters[0]) {
  filters.forEach((choice) => choice.addEventListener("change", applyFilters));
  applyFilters();
}

// Print: what is folded away on the screen is on the paper.
window.addEventListener("beforeprint", () => all("details").forEach((fold) => { fold.open = true; }));
