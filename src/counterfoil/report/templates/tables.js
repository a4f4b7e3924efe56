"use strict";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const byId = (name) => document.getElementById(name);

// What needs this script is hidden without it.
all(".copying").forEach((part) => { part.hidden = false; });

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

// Print: what is folded away on the screen is on the paper.
window.addEventListener("beforeprint", () => all("details").forEach((fold) => { fold.open = true; }));
