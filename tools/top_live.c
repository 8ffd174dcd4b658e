// SPDX-License-Identifier: GPL-2.0
/* The live view: samples, keys, and the terminal's ways. Keys are htop's where it has one for it. */
#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/top_ui.h"

static volatile sig_atomic_t quit_signal;

static void on_quit(int sig)
{
	quit_signal = sig;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool matches(const struct top_ui *ui, const struct top_thread *t)
{
	char id[16];

	if (!ui->filter[0] || strcasestr(t->s->comm, ui->filter))
		return true;
	snprintf(id, sizeof(id), "%d", t->s->pid);
	if (!strcmp(id, ui->filter))
		return true;
	snprintf(id, sizeof(id), "%d", t->s->tid);
	return !strcmp(id, ui->filter);
}

/* Choose and order the threads to show. */
static void arrange(struct top_ui *ui)
{
	struct top_thread *t = reallocarray(ui->thread, ui->r->nr_threads + 1, sizeof(*t));

	ui->nr_threads = 0;
	if (!t)
		return;
	ui->thread = t;
	for (size_t i = 0; i < ui->r->nr_threads; i++)
		if (matches(ui, &ui->r->thread[i]))
			t[ui->nr_threads++] = ui->r->thread[i];
	fmt_top_sort(t, ui->nr_threads, ui->sort, ui->reverse);
}

static void sort_by(struct top_ui *ui, enum top_column c)
{
	ui->sort = c;
	ui->reverse = false;
}

/* Move a line number by keys; its range is put right when it is drawn. */
static bool move_key(int ch, size_t *line)
{
	size_t page = top_room();

	switch (ch) {
	case KEY_UP:
		*line -= *line > 0;
		return true;
	case KEY_DOWN:
		(*line)++;
		return true;
	case KEY_PPAGE:
		*line -= *line < page ? *line : page;
		return true;
	case KEY_NPAGE:
		*line += page;
		return true;
	case KEY_HOME:
		*line = 0;
		return true;
	case KEY_END:
		*line = SIZE_MAX / 2;
		return true;
	default:
		return false;
	}
}

static void filter_key(struct top_ui *ui, int ch)
{
	size_t len = strlen(ui->filter);

	if (ch == '\n' || ch == KEY_ENTER || ch == KEY_F(4)) {
		ui->mode = TOP_TABLE;
	} else if (ch == 27) {
		ui->filter[0] = '\0';
		ui->mode = TOP_TABLE;
	} else if (ch == KEY_BACKSPACE || ch == 127 || ch == 8) {
		/* All bytes of a character of UTF-8. */
		while (len && ((unsigned char)ui->filter[--len] & 0xc0) == 0x80)
			;
		ui->filter[len] = '\0';
	} else if (ch >= ' ' && ch < 256 && len + 1 < sizeof(ui->filter)) {
		ui->filter[len] = (char)ch;
		ui->filter[len + 1] = '\0';
	}
}

static void menu_key(struct top_ui *ui, int ch)
{
	if (move_key(ch, &ui->menu))
		return;
	if (ch == '\n' || ch == KEY_ENTER)
		sort_by(ui, top_menu_column(ui->menu));
	ui->mode = TOP_TABLE;
}

static void open_menu(struct top_ui *ui)
{
	ui->view = TOP_THREADS;
	ui->mode = TOP_SORT;
	for (ui->menu = 0; top_menu_column(ui->menu) != ui->sort; ui->menu++)
		;
}

/* False: quit. */
static bool table_key(struct top_ui *ui, int ch)
{
	if (move_key(ch, &ui->row[ui->view]))
		return true;
	switch (ch) {
	case 'q':
	case KEY_F(10):
		return false;
	case KEY_F(1):
	case 'h':
	case '?':
		ui->mode = TOP_HELP;
		ui->help_line = 0;
		break;
	case KEY_F(2):
	case '\t':
		ui->view = (enum top_view)((ui->view + 1) % TOP_NR_VIEWS);
		break;
	case KEY_BTAB:
		ui->view = (enum top_view)((ui->view + TOP_NR_VIEWS - 1) % TOP_NR_VIEWS);
		break;
	case '1':
	case '2':
	case '3':
		ui->view = (enum top_view)(ch - '1');
		break;
	case KEY_F(4):
	case '\\':
	case '/':
		ui->view = TOP_THREADS;
		ui->mode = TOP_FILTER;
		break;
	case KEY_F(5):
	case 'Z':
	case ' ':
		ui->paused = !ui->paused;
		break;
	case KEY_F(6):
	case '<':
	case '>':
	case ',':
	case '.':
		open_menu(ui);
		break;
	case KEY_F(7):
	case 'I':
		ui->reverse = !ui->reverse;
		break;
	case 'A':
	case 'a':
		ui->all_samples = !ui->all_samples;
		break;
	case 'P':
		sort_by(ui, TOP_ONCPU);
		break;
	case 'N':
		sort_by(ui, TOP_PID);
		break;
	case 12: /* ^L */
		clearok(curscr, TRUE);
		break;
	default:
		break;
	}
	return true;
}

static bool press(struct top_ui *ui, int ch)
{
	if (ch == KEY_RESIZE)
		return true;
	switch (ui->mode) {
	case TOP_FILTER:
		filter_key(ui, ch);
		break;
	case TOP_SORT:
		menu_key(ui, ch);
		break;
	case TOP_HELP:
		if (!move_key(ch, &ui->help_line))
			ui->mode = TOP_TABLE;
		break;
	default:
		if (!table_key(ui, ch))
			return false;
	}
	arrange(ui);
	return true;
}

/* Wait for a key, a signal, or until_ns (0: for ever). False: quit. */
static bool wait_keys(struct top_ui *ui, uint64_t until_ns, const sigset_t *open)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t now = now_ns(), left = until_ns > now ? until_ns - now : 0;
	struct timespec ts = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
	int ch;

	/* The terminal is gone: it is always ready then, and no signal gets in. */
	if (ppoll(&in, 1, until_ns ? &ts : NULL, open) > 0 &&
	    in.revents & (POLLHUP | POLLERR | POLLNVAL))
		return false;
	if (quit_signal)
		return false;
	/* A resize is a key, too. */
	while ((ch = getch()) != ERR)
		if (!press(ui, ch))
			return false;
	return true;
}

/* Returns 0 or an error after which there is nothing to show. */
static int take(struct top_ui *ui, char *why, size_t len)
{
	int err = top_sample(ui->o->top, why, len);

	if (err == -ESRCH || err == -ENODATA) {
		snprintf(ui->ended, sizeof(ui->ended), "%s", why);
		err = 0;
	}
	ui->r = top_report(ui->o->top);
	arrange(ui);
	return err;
}

static int loop(struct top_ui *ui, const sigset_t *open, char *why, size_t len)
{
	uint64_t next = now_ns() + ui->o->interval_ns;
	unsigned int intervals = 0;
	int err = take(ui, why, len);
	bool still;

	while (!err) {
		top_draw(ui);
		still = ui->paused || ui->ended[0];
		if (!wait_keys(ui, still ? 0 : next, open))
			break;
		if (ui->paused || ui->ended[0] || now_ns() < next)
			continue;
		if (++intervals == ui->o->count)
			break;
		err = take(ui, why, len);
		next += ui->o->interval_ns;
		/* After a pause, or where a sample takes longer than that. */
		if (next < now_ns())
			next = now_ns() + ui->o->interval_ns;
	}
	return err;
}

/* The terminal, ready to be drawn on; NULL after a message. */
static SCREEN *open_screen(void)
{
	const char *term = getenv("TERM") ?: "";
	SCREEN *screen = newterm(NULL, stdout, stdin);
	const char *place;

	if (!screen) {
		cmd_err("the terminal '%s' is not known: set TERM, or use --once or --json", term);
		return NULL;
	}
	/* curses would try with any. */
	place = tigetstr("cup");
	if (place && place != (char *)-1)
		return screen;
	endwin();
	delscreen(screen);
	cmd_err("the terminal '%s' cannot place a cursor: use --once or --json", term);
	return NULL;
}

int top_live(const struct top_opts *o)
{
	static const int quits[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction quit = {.sa_handler = on_quit};
	struct top_ui ui = {.o = o, .sort = TOP_ONCPU};
	sigset_t ours, open;
	char why[300] = "";
	SCREEN *screen;
	int err;

	if (setlocale(LC_CTYPE, ""))
		ui.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	/* They come in ppoll() only. */
	sigemptyset(&ours);
	sigaddset(&ours, SIGWINCH);
	for (size_t i = 0; i < sizeof(quits) / sizeof(quits[0]); i++) {
		sigaction(quits[i], &quit, NULL);
		sigaddset(&ours, quits[i]);
	}
	sigprocmask(SIG_BLOCK, &ours, &open);
	screen = open_screen();
	if (!screen)
		return CMD_FAILED;
	/* The bytes of a key may come apart, over a network or on a busy machine. */
	set_escdelay(100);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	top_draw_init();
	err = loop(&ui, &open, why, sizeof(why));
	endwin();
	delscreen(screen);
	free(ui.thread);
	return err ? cmd_err("%s", why) : 0;
}
