// SPDX-License-Identifier: MIT
// Tables sort by a click on a column's name, or by Enter and Space there. All else is in the page itself.
"use strict";

// What a cell sorts by: the exact number of data-v, else its text; null where there is nothing.
function valueOf(cell) {
	if (cell.dataset.v !== undefined)
		return BigInt(cell.dataset.v);
	return cell.classList.contains("none") ? null : cell.textContent;
}

function compare(a, b) {
	if (typeof a === "bigint" && typeof b === "bigint")
		return a < b ? -1 : a > b ? 1 : 0;
	return String(a).localeCompare(String(b));
}

function sortBy(table, column, descending) {
	const body = table.tBodies[0];
	const rows = [...body.rows].map(row => ({ row, value: valueOf(row.cells[column]) }));

	rows.sort((a, b) => {
		if (a.value === null || b.value === null) // nothing is last, either way
			return (a.value === null) - (b.value === null);
		return descending ? compare(b.value, a.value) : compare(a.value, b.value);
	});
	body.append(...rows.map(r => r.row));
	[...table.tHead.rows[0].cells].forEach((th, i) => {
		if (i === column)
			th.setAttribute("aria-sort", descending ? "descending" : "ascending");
		else
			th.removeAttribute("aria-sort");
	});
}

for (const table of document.querySelectorAll("table.sorts")) {
	[...table.tHead.rows[0].cells].forEach((th, column) => {
		const button = document.createElement("button");

		button.type = "button";
		button.append(...th.childNodes);
		th.append(button);
		button.addEventListener("click", () => {
			// Numbers begin with the greatest, names with A.
			const numbers = [...table.tBodies[0].rows].some(r => r.cells[column].dataset.v !== undefined);
			const before = th.getAttribute("aria-sort");

			sortBy(table, column, before ? before === "ascending" : numbers);
		});
	});
}
