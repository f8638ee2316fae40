"use strict";
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button")?.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const number = head.classList.contains("n");
      const key = (row) => {
        const cell = row.cells[column];
        return number ? (cell.dataset.v === undefined ? NaN : Number(cell.dataset.v)) : cell.textContent;
      };
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row) => [key(row), row]);
      const order = (a, b) => (number ? a - b : a < b ? -1 : a > b ? 1 : 0);
      rows.sort(([a], [b]) => {
        if (number && (Number.isNaN(a) || Number.isNaN(b))) return Number.isNaN(a) - Number.isNaN(b);
        return down ? order(b, a) : order(a, b);
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll(".problem details:not([open])")];
  closed.forEach((one) => (one.open = true));
});
addEventListener("afterprint", () => closed.forEach((one) => (one.open = false)));
