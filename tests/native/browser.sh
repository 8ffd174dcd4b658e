# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# A headless Chromium and packages of npm for tests that look at pages, kept between runs. Source it.

npm_cache=${STATPAGE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/statpage}/npm

# browser_ready PACKAGE@VERSION...: whether a browser, node and the packages are there, installing what is
# not; says why not.
browser_ready()
{
	# node and npm may have come another way than by packages.
	scripts/deps.sh browser && { command -v npm || scripts/deps.sh npm; } && mkdir -p "$npm_cache" &&
		npm install --silent --no-audit --no-fund --prefix "$npm_cache" playwright-core@1.65.1 "$@"
}

# look SCRIPT ARGUMENT...
look()
{
	NODE_PATH=$npm_cache/node_modules timeout -k 5 300 node "$@"
}
