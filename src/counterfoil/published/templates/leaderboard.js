"use strict";
const body = document.querySelector("tbody");
const rows = [...body.rows];
const search = document.getElementById("filter");
const own = document.getElementById("own"); // only where runs were given
const origin = document.getElementById("origin"); // only where there are several sources

function shown(row) {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = row.dataset.words.toLowerCase();
  if (own?.checked && !row.matches(".own, .same")) return false;
  if (origin?.value && row.dataset.origin !== origin.value) return false;
  return words.every((word) => text.includes(word));
}

function filter() {
  let count = 0;
  for (const row of rows) {
    row.hidden = !shown(row);
    count += row.hidden ? 0 : 1;
  }
  document.getElementById("count").textContent = `${count} of ${rows.length} rows`;
}

function keyOf(row, column, kind) {
  const cell = row.cells[column];
  if (kind === "text") return cell.textContent.trim().toLowerCase();
  return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
}

/** Missing numbers go last in either direction. */
function compared(left, right, sign) {
  if (left === null || right === null) return (left === null) - (right === null);
  return sign * (typeof left === "string" ? left.localeCompare(right) : left - right);
}

function sort(button) {
  const head = button.closest("th");
  const ascending = head.getAttribute("aria-sort")
    ? head.getAttribute("aria-sort") === "descending"
    : button.dataset.kind === "text";
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const sign = ascending ? 1 : -1;
  const keyed = rows.map((row) => [keyOf(row, head.cellIndex, button.dataset.kind), row]);
  keyed.sort((left, right) => compared(left[0], right[0], sign));
  body.append(...keyed.map((pair) => pair[1]));
}

search.addEventListener("input", filter);
for (const choice of [own, origin]) choice?.addEventListener("change", filter);
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
for (const button of document.querySelectorAll("button.sort")) button.addEventListener("click", () => sort(button));

/** Says so where columns lie outside what is seen. */
function tellOfColumns() {
  const box = document.querySelector(".scroll");
  document.getElementById("sideways").hidden = box.scrollWidth <= box.clientWidth;
}

window.addEventListener("resize", tellOfColumns);
tellOfColumns();
