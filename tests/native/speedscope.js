// SPDX-License-Identifier: GPL-2.0
// Open profiles with the real speedscope in a headless Chromium and print what a person would see:
//	speedscope.js SPEEDSCOPE-PACKAGE CHROMIUM SCREENSHOT-PREFIX FILE...
// One line of JSON a file: {file, title, profiles: [...], error, table: [[total, self, name], ...]} with
// the table of the sandwich view, for the first profile. Uses the loopback interface only.
const fs = require("fs"), http = require("http"), path = require("path");
const [pkg, chromium, prefix, ...files] = process.argv.slice(2);
const { chromium: browserType } = require("playwright-core");
const release = path.join(pkg, "dist", "release");
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

const server = http.createServer((req, res) => {
	const name = decodeURIComponent(new URL(req.url, "http://x").pathname);
	const file = name.startsWith("/profile/") ? files[Number(name.split("/")[2])] :
		path.join(release, path.normalize(name === "/" ? "/index.html" : name));
	fs.readFile(file, (err, data) => {
		res.writeHead(err ? 404 : 200, { "Content-Type": types[path.extname(file)] || "text/plain" });
		res.end(err ? "" : data);
	});
});

// Rows of the sandwich view's table: the list keeps rows in sight only, so it is scrolled through,
// until five steps running have shown nothing new.
async function readTable(page) {
	const rows = new Map(), end_ms = Date.now() + 60000;
	for (let quiet = 0; quiet < 5 && Date.now() < end_ms;) {
		const before = rows.size;
		for (const cells of await page.$$eval("tr", trs => trs.map(tr =>
			[...tr.querySelectorAll("td")].map(td => td.innerText.trim()))))
			if (cells.length === 3 && cells[0].includes("%"))
				rows.set(cells[2], cells);
		quiet = rows.size && rows.size === before ? quiet + 1 : 0;
		await page.mouse.wheel(0, 300);
		await page.waitForTimeout(50);
	}
	return [...rows.values()];
}

async function look(browser, index, port) {
	const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
	const errors = [];
	page.on("pageerror", e => errors.push(String(e)));
	page.on("dialog", d => { errors.push(d.message()); d.dismiss(); });
	const name = path.basename(files[index]);
	await page.goto(`http://127.0.0.1:${port}/#profileURL=/profile/${index}/${name}`);
	await page.getByText("Sandwich").waitFor({ timeout: 60000 });
	await page.waitForTimeout(500);
	await page.screenshot({ path: `${prefix}-${name}.png` });
	const title = await page.title();
	await page.getByText("Sandwich").click();
	await page.mouse.move(300, 400);
	const table = await readTable(page);
	await page.screenshot({ path: `${prefix}-${name}-sandwich.png` });
	// A click on the title in the middle lists all profiles; one alone has no list.
	const bar = await page.evaluate(() => document.body.innerText);
	const shown = bar.split("\n").find(l => /\(\d+\/\d+\)/.test(l));
	let profiles = [];
	if (shown) {
		await page.getByText(shown).first().click();
		await page.waitForTimeout(300);
		profiles = (await page.evaluate(() => document.body.innerText)).split("\n");
	}
	await page.close();
	console.log(JSON.stringify({ file: name, title, shown, profiles, errors, table }));
}

server.listen(0, "127.0.0.1", async () => {
	const browser = await browserType.launch({ executablePath: chromium,
		args: ["--no-sandbox", "--disable-gpu", "--use-gl=swiftshader", "--enable-unsafe-swiftshader"] });
	try {
		for (let i = 0; i < files.length; i++)
			await look(browser, i, server.address().port);
	} catch (e) {
		console.error(String(e));
		process.exitCode = 1;
	}
	await browser.close();
	server.close();
});
