
// Pictures: a card opens its picture as a modal dialog; without this script it opens by its address.
for (const card of all("a[data-large]")) {
  card.addEventListener("click", (event) => {
    const large = byId(card.hash.slice(1));
    if (!large || !large.showModal) return;
    event.preventDefault();
    large.showModal();
    large.addEventListener("close", () => card.focus(), { once: true });
  });
}
for (const large of all("dialog")) {
  large.querySelector(".close").addEventListener("click", (event) => {
    if (!large.open) return;
    event.preventDefault();
    large.close();
  });
  large.addEventListener("click", (event) => { if (event.target === large) large.close(); });
}

// A link to a folded part opens it.
function unfold() {
  const part = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
  if (!part) return;
  for (let fold = part.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  part.scrollIntoView();
}
window.addEventListener("hashchange", unfold);
unfold();

// Many models: find one by name, show only the best, fold the middle of a long table, shade those that cannot be told apart from a chosen one.
const rankRows = all("table.rank tbody tr");
if (rankRows.length) {
  all(".tools, .script, .pick").forEach((part) => { part.hidden = false; });
  const every = byId("every"); // there only where the middle of the table is folded
  const show = () => {
    const wanted = byId("find").value.trim().toLowerCase();
    const cluster = byId("cluster") ? byId("cluster").value : "";
    const folds = every && !every.checked && !wanted && !cluster && !byId("best").checked;
    rankRows.forEach((row) => {
      row.hidden = !row.dataset.name.includes(wanted) || (cluster && row.dataset.cluster !== cluster)
        || (byId("best").checked && row.dataset.best === "0")
        || (folds && "folded" in row.dataset);
    });
    const shown = rankRows.filter((row) => !row.hidden).length;
    byId("count").textContent = shown < rankRows.length ? `${shown} of ${rankRows.length} models` : "";
  };
  byId("find").addEventListener("input", show);
  byId("best").addEventListener("change", show);
  if (byId("cluster")) byId("cluster").addEventListener("change", show);
  if (every) every.addEventListener("change", show);
  show();
  rankRows.forEach((row) => row.querySelector("input").addEventListener("change", () => {
    const ties = new Set(row.dataset.ties.split(" ").map(Number));
    rankRows.forEach((other, place) => other.classList.toggle("tied", ties.has(place)));
  }));
}
