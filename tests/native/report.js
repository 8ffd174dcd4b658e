// SPDX-License-Identifier: GPL-2.0
// Open a page of statpage report in a headless Chromium and use it as a person would:
//	report.js CHROMIUM SCREENSHOT-PREFIX PAGE
// One object of JSON: what was seen, and `errors`, which is to be empty.
const path = require("path");
const [chromium, prefix, file] = process.argv.slice(2);
const { chromium: browserType } = require("playwright-core");
const errors = [], requests = [];

async function open(browser, width, colorScheme) {
	const page = await browser.newPage({ viewport: { width, height: 800 }, colorScheme });

	page.on("pageerror", e => errors.push(String(e)));
	page.on("console", m => errors.push(m.text()));
	page.on("dialog", d => { errors.push(`dialog: ${d.message()}`); d.dismiss(); });
	page.on("request", r => requests.push(r.url()));
	await page.goto("file://" + path.resolve(file));
	return page;
}

// Luminance contrast of the page's text, as WCAG counts it, and how much wider than the screen it is.
function seen() {
	const light = color => {
		const [r, g, b] = color.match(/\d+/g).slice(0, 3).map(c => {
			c /= 255;
			return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
		});
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const contrast = element => {
		let at = element, style = getComputedStyle(element);
		const ink = light(style.color);
		while (at && /^rgba\(.*, 0\)$|^transparent$/.test(getComputedStyle(at).backgroundColor))
			at = at.parentElement;
		const back = light(getComputedStyle(at || document.body).backgroundColor);
		return (Math.max(ink, back) + 0.05) / (Math.min(ink, back) + 0.05);
	};
	const texts = ["body", "h2", ".missing li", ".note", ".engine", "td", "th", "small", "a", ".sum", "dt", "dd",
		".rose", ".fell", ".same", ".axis span", ".y"];
	const found = texts.map(t => document.querySelector(t)).filter(e => e);

	return { wider: document.documentElement.scrollWidth - innerWidth,
		dark: light(getComputedStyle(document.body).backgroundColor) < 0.2,
		contrast: Math.min(...found.map(contrast)) };
}

async function look(browser, width, colorScheme) {
	const page = await open(browser, width, colorScheme);
	const closed = await page.evaluate(seen);
	// A screen a section: the whole page is more than a picture holds.
	for (const id of ["missing", "compare", "calls0", "time0", "dist0"]) {
		await page.evaluate(i => document.getElementById(i)?.scrollIntoView(), id);
		await page.screenshot({ path: `${prefix}-${width}-${colorScheme}-${id}.png`, timeout: 120000 });
	}
	await page.evaluate(() => document.querySelectorAll("details").forEach(d => { d.open = true; }));
	const opened = await page.evaluate(seen);
	await page.close();
	return { width, colorScheme, closed, opened };
}

// A column of the table as it stands, and by what it says it is sorted.
function column(page, name) {
	return page.evaluate(wanted => {
		const table = document.querySelector("table.sorts");
		const heads = [...table.tHead.rows[0].cells];
		const at = heads.findIndex(th => th.textContent === wanted);
		const cells = [...table.tBodies[0].rows].map(r => r.cells[at]);
		return { sorted: heads.map(th => th.getAttribute("aria-sort")).filter(s => s).join(),
			mine: heads[at].getAttribute("aria-sort"),
			values: cells.map(c => c.dataset.v ?? (c.classList.contains("none") ? null : c.textContent)) };
	}, name);
}

async function sort(browser) {
	const page = await open(browser, 1280, "light");

	// A page of a recording may have no table that sorts.
	if (!await page.locator("table.sorts").count())
		return null;
	const button = name => page.locator("table.sorts").first().getByRole("button", { name, exact: true });
	const out = {};

	for (const name of ["Calls", "Failed", "p99"]) {
		await button(name).click();
		out[name] = [await column(page, name)];
		await button(name).click();
		out[name].push(await column(page, name));
	}
	// By keyboard alone: tab along the heads to the first, Enter and Space on it, then one further.
	for (let i = 0; i < 200; i++) {
		await page.keyboard.press("Shift+Tab");
		if (await page.evaluate(() => document.activeElement.textContent) === "Call")
			break;
	}
	await page.keyboard.press("Enter");
	out.Call = [await column(page, "Call")];
	await page.keyboard.press("Space");
	out.Call.push(await column(page, "Call"));
	// A lane opens by keyboard.
	const lane = page.locator("details.lane > summary").first();
	await lane.focus();
	await page.keyboard.press("Enter");
	out.opened = await page.evaluate(() => document.querySelector("details.lane").open);
	await page.close();
	return out;
}

(async () => {
	const browser = await browserType.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
	try {
		const looks = [];
		for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [360, "light"], [360, "dark"]])
			looks.push(await look(browser, width, scheme));
		const sorts = await sort(browser);
		const parse5 = require("parse5"), html = require("fs").readFileSync(file, "utf8");
		const invalid = [];
		parse5.parse(html, { sourceCodeLocationInfo: true,
			onParseError: e => invalid.push(`${e.code} at ${e.startLine}:${e.startCol}`) });
		console.log(JSON.stringify({ looks, sorts, invalid, errors,
			requests: requests.filter(r => r !== "file://" + path.resolve(file)) }));
	} catch (e) {
		console.error(String(e));
		process.exitCode = 1;
	}
	await browser.close();
})();
