/* SPDX-License-Identifier: GPL-2.0 */
/*
 * This test checks that the documentation's examples compile as C11 and as C++17, in a program and
 * in a shared library, without a warning, and that translation units of both languages link.
 */
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/t.h"

#define WARN "-pedantic -Wall -Wextra -Wconversion -Werror"

static char top[PATH_MAX]; /* of the tree: we are in build/tests/unit */

static int run(const char *fmt, ...)
{
	char cmd[4 * PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	return system(cmd);
}

static int have(const char *cc)
{
	return !run("command -v %s >/dev/null", cc);
}

static void compile(const char *cc, const char *lang)
{
	static const char *const opt[] = {"-O2", "-O0", "-O2 -fPIC"};
	unsigned int i;

	TEST("compile: the examples with %s %s", cc, lang) {
		if (!have(cc)) {
			SKIP("there is no %s here", cc);
			break;
		}
		for (i = 0; i < 3; i++)
			CHECK(!run("cd %s/tests/unit/reader && "
				   "printf '#include \"%%s\"\\n' example_*.c | "
				   "%s %s %s " WARN " -I%s -I. -c -o /dev/null -",
				   top, cc, lang, opt[i], top),
			      "%s", opt[i]);
	}
}

int main(void)
{
	char dir[] = "/tmp/csf-compile.XXXXXX", *end;
	ssize_t n;

	n = readlink("/proc/self/exe", top, sizeof(top) - 1);
	top[n < 0 ? 0 : n] = '\0';
	end = strstr(top, "/build/tests/unit/");
	if (!end || !mkdtemp(dir)) {
		printf("# not run from build/tests/unit\n");
		return 1;
	}
	*end = '\0';
	compile("gcc", "-x c -std=c11");
	compile("g++", "-x c++ -std=c++17");
	compile("clang", "-x c -std=c11");
	compile("clang++", "-x c++ -std=c++17");
	TEST("compile: a C and a C++ translation unit share one state") {
		if (!have("g++")) {
			SKIP("there is no g++ here");
			break;
		}
		CHECK(!run("cd %s && gcc -O2 -I%s -c %s/tests/unit/reader/example_line.c && "
			   "g++ -O2 -I%s -x c++ -c %s/tests/unit/reader/example_all.c && "
			   "echo 'void op(void); void op(void) {} int main(void) { return 0; }' | "
			   "gcc -x c -c -o main.o - && g++ -o all main.o example_*.o -pthread",
			   dir, top, top, top, top),
		      "they do not link");
		CHECK(!run("test $(nm %s/all | grep -c csf_proc_v1_) = 1", dir), "not one state");
		CHECK(!run("test $(nm %s/all | grep -c csf_self_v1_) = 1", dir), "not one state");
	}
	if (run("rm -r %s", dir))
		return 1;
	return t_done("t_reader_compile");
}
