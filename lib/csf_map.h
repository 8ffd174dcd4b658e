/* SPDX-License-Identifier: MIT */
/*
 * Part of lib/coarse_stat_fs.h, which includes it, and none of its interface: how a process and
 * its threads come by their mappings, and what becomes of these in fork(), at a thread's end and
 * in dlclose().
 */
#ifndef LIB_CSF_MAP_H
#define LIB_CSF_MAP_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include "../include/uapi/coarse_stat_fs.h"

/* Where the filesystem is mounted, and where statpage serve listens; a test may say otherwise. */
#ifndef CSF_MOUNT_PATH
#define CSF_MOUNT_PATH CSF_MOUNT
#endif
#ifndef CSF_SOCKET_PATH
#define CSF_SOCKET_PATH CSF_SERVE_SOCKET
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What we need of Linux and strict C11 hides; and calls that are no cancellation points. */
enum {
	CSF_AT_FDCWD_ = -100,
	CSF_O_CLOEXEC_ = 02000000,
	CSF_MAP_ANONYMOUS_ = 0x20,
	CSF_MREMAP_MAYMOVE_ = 1,
	CSF_MREMAP_FIXED_ = 2,
	CSF_MADV_DONTFORK_ = 10,
	CSF_MADV_WIPEONFORK_ = 18,
	CSF_SIG_BLOCK_ = 0,
	CSF_SIG_SETMASK_ = 2,
	CSF_SOCK_SEQPACKET_ = 5,
	CSF_MSG_NOSIGNAL_ = 0x4000,
	CSF_MSG_CMSG_CLOEXEC_ = 0x40000000,
};

/* 0 or more, or -errno; errno itself is left alone. */
static inline long csf_sys_(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = 0;
	long ret;

	__asm__ __volatile__("syscall"
			     : "=a"(ret)
			     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			     : "rcx", "r11", "memory");
	return ret;
}

static inline uint32_t csf_gettid_(void)
{
	return (uint32_t)csf_sys_(SYS_gettid, 0, 0, 0, 0, 0);
}

static inline int csf_fail_(int err)
{
	errno = err;
	return -1;
}

/* Whether len bytes at page are a page of this kind that this reader understands. */
static inline int csf_check_(const struct csf_hdr *h, size_t len, unsigned int kind, size_t min)
{
	return len >= sizeof(*h) && h->magic == CSF_MAGIC && h->abi == CSF_ABI_VERSION &&
	       h->kind == kind && h->size >= min && h->size <= len &&
	       (h->clock == CSF_CLOCK_TSC || h->clock == CSF_CLOCK_MONOTONIC);
}

/* Up to the last bucket: a page without is none of ours. */
#define CSF_THREAD_MIN_ offsetof(struct csf_thread, nr_preempt)

/* A mapped thread page. Claimed and freed without a lock: a signal handler may be the caller. */
struct csf_slot_ {
	void *page; /* NULL: free; the slot itself: claimed */
	size_t len; /* of the mapping, plus CSF_UNHOOKED_ where csf_sweep_() is to unmap it */
};

/* The length of a file of pages is even. */
#define CSF_UNHOOKED_ ((size_t)1)

static inline void csf_slot_unmap_(const struct csf_slot_ *slot)
{
	munmap(slot->page, slot->len & ~CSF_UNHOOKED_);
}

#define CSF_NR_SLOTS_ 253 /* fills a page */

/*
 * What a process knows, in memory that the kernel wipes in a forked child (MADV_WIPEONFORK):
 * there the pages are not mapped (they are marked don't-copy), whoever made the child. Larger
 * programs chain more chunks; a child forgets those, which leaves it some empty address space
 * and no memory.
 */
struct csf_chunk_ {
	uint64_t epoch; /* of the first chunk: differs in each process that fork made */
	struct csf_chunk_ *next;
	void *cpu_page;
	size_t cpu_len;
	uint32_t sweeping;
	struct csf_slot_ slot[CSF_NR_SLOTS_];
};

/*
 * What outlives a fork, and what the fast path needs of a thread. One each per linked object:
 * weak, so that its translation units share them, and hidden, so that other objects do not.
 */
struct csf_proc_ {
	const uint64_t *epoch; /* of first, or never */
	uint64_t never;	       /* CSF_NEVER_ */
	uint64_t next_epoch;
	struct csf_chunk_ *first;
	uint32_t key; /* pthread key plus one */
	uint32_t loaded, exiting;
};

struct csf_self_ {
	uint64_t fast;	/* epoch, if the fast path may read the page; or CSF_UNMAPPED_ */
	uint64_t epoch; /* csf_chunk_.epoch under which page was mapped, or CSF_UNMAPPED_ */
	const struct csf_thread *page;
	uint64_t want;	   /* flags and gen of the header, as seen last */
	uint32_t aux_mask; /* bits of rdtscp's third word that hold the CPU number */
	uint32_t ending;   /* csf_thread_exit_() has run and may not run again */
	struct csf_slot_ *slot;
};

/* Epochs that never meet: of a forked child's memory, of a thread, and of a process before use. */
enum { CSF_WIPED_, CSF_UNMAPPED_, CSF_NEVER_, CSF_FIRST_EPOCH_ };

#define CSF_SHARED_ __attribute__((weak, visibility("hidden")))
#if defined(CSF_TLS_MODEL)
#define CSF_TLS_ CSF_SHARED_ __attribute__((tls_model(CSF_TLS_MODEL)))
#elif defined(__PIC__) && !defined(__PIE__)
#define CSF_TLS_ CSF_SHARED_ __attribute__((tls_model("initial-exec")))
#else
#define CSF_TLS_ CSF_SHARED_
#endif

extern struct csf_proc_ csf_proc_v1_;
CSF_SHARED_ struct csf_proc_ csf_proc_v1_ = {
	&csf_proc_v1_.never, CSF_NEVER_, CSF_FIRST_EPOCH_, NULL, 0, 0, 0};
CSF_TLS_ __thread struct csf_self_ csf_self_v1_ = {CSF_UNMAPPED_, CSF_UNMAPPED_, NULL, 0, 0, 0,
						   NULL};

/* The process's epoch; a relaxed look is enough, as it only ever meets what the caller itself stored. */
static inline uint64_t csf_epoch_(void)
{
	const uint64_t *epoch = __atomic_load_n(&csf_proc_v1_.epoch, __ATOMIC_RELAXED);

	return __atomic_load_n(epoch, __ATOMIC_RELAXED);
}

static inline struct csf_chunk_ *csf_chunk_new_(void)
{
	void *c = mmap(NULL, sizeof(struct csf_chunk_), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | CSF_MAP_ANONYMOUS_, -1, 0);

	if (c == MAP_FAILED)
		return NULL;
	if (!csf_sys_(SYS_madvise, (long)c, sizeof(struct csf_chunk_), CSF_MADV_WIPEONFORK_, 0, 0))
		return (struct csf_chunk_ *)c;
	munmap(c, sizeof(struct csf_chunk_));
	errno = EOPNOTSUPP;
	return NULL;
}

/* The process's first chunk, with an epoch; NULL with errno. Racing callers agree on one. */
static inline struct csf_chunk_ *csf_process_(void)
{
	struct csf_proc_ *proc = &csf_proc_v1_;
	struct csf_chunk_ *c = __atomic_load_n(&proc->first, __ATOMIC_ACQUIRE), *mine;
	uint64_t wiped = CSF_WIPED_;

	if (!c) {
		mine = csf_chunk_new_();
		if (!mine)
			return NULL;
		if (__atomic_compare_exchange_n(&proc->first, &c, mine, 0, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			c = mine;
		else
			munmap(mine, sizeof(*mine));
	}
	if (__atomic_load_n(&c->epoch, __ATOMIC_ACQUIRE) == CSF_WIPED_)
		__atomic_compare_exchange_n(
			&c->epoch, &wiped,
			__atomic_fetch_add(&proc->next_epoch, 1, __ATOMIC_RELAXED), 0,
			__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	__atomic_store_n(&proc->epoch, &c->epoch, __ATOMIC_RELEASE);
	return c;
}

/*
 * Unmap the pages of dead threads that had no hook at their end: the kernel marks them. One
 * sweeper at a time, so that none unmaps what another reads; who comes second need not wait.
 */
static inline void csf_sweep_(struct csf_chunk_ *first)
{
	struct csf_slot_ *slot;
	struct csf_chunk_ *c;
	void *page;

	if (__atomic_exchange_n(&first->sweeping, 1, __ATOMIC_ACQUIRE))
		return;
	for (c = first; c; c = __atomic_load_n(&c->next, __ATOMIC_ACQUIRE))
		for (slot = c->slot; slot < c->slot + CSF_NR_SLOTS_; slot++) {
			page = __atomic_load_n(&slot->page, __ATOMIC_ACQUIRE);
			if (!page || page == slot ||
			    !(__atomic_load_n(&slot->len, __ATOMIC_ACQUIRE) & CSF_UNHOOKED_))
				continue;
			/* The length is this page's, and nobody else unmaps it, if it is still there. */
			if (__atomic_load_n(&slot->page, __ATOMIC_ACQUIRE) != page)
				continue;
			if (!(__atomic_load_n(&((const struct csf_hdr *)page)->flags,
					      __ATOMIC_RELAXED) &
			      CSF_F_DEAD))
				continue;
			csf_slot_unmap_(slot);
			__atomic_store_n(&slot->page, (void *)NULL, __ATOMIC_RELEASE);
		}
	__atomic_store_n(&first->sweeping, 0, __ATOMIC_RELEASE);
}

static inline struct csf_slot_ *csf_slot_find_(struct csf_chunk_ *c)
{
	struct csf_slot_ *slot;
	void *none;

	for (slot = c->slot; slot < c->slot + CSF_NR_SLOTS_; slot++) {
		none = NULL;
		if (!__atomic_load_n(&slot->page, __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&slot->page, &none, (void *)slot, 0,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return slot;
	}
	return NULL;
}

/* A claimed slot, or NULL with errno. Before the table grows, the dead leave it. */
static inline struct csf_slot_ *csf_slot_new_(struct csf_chunk_ *first)
{
	struct csf_chunk_ *c = first, *next, *mine;
	struct csf_slot_ *slot;
	int swept = 0;

	while (!(slot = csf_slot_find_(c))) {
		next = __atomic_load_n(&c->next, __ATOMIC_ACQUIRE);
		if (!next && !swept++) {
			csf_sweep_(first);
			next = first;
		} else if (!next) {
			mine = csf_chunk_new_();
			if (!mine)
				return NULL;
			if (__atomic_compare_exchange_n(&c->next, &next, mine, 0, __ATOMIC_ACQ_REL,
							__ATOMIC_ACQUIRE))
				next = mine;
			else
				munmap(mine, sizeof(*mine));
		}
		c = next;
	}
	return slot;
}

/* Map a page from its descriptor, which is closed. The page, or NULL with errno. */
static inline void *csf_map_fd_(long fd, unsigned int kind, size_t min, size_t len)
{
	void *page = mmap(NULL, len, PROT_READ, MAP_SHARED, (int)fd, 0);

	csf_sys_(SYS_close, fd, 0, 0, 0, 0);
	if (page == MAP_FAILED)
		return NULL;
	/* The kernel's own pages are don't-copy anyway; other writers' need not be. */
	csf_sys_(SYS_madvise, (long)page, (long)len, CSF_MADV_DONTFORK_, 0, 0);
	if (csf_check_((const struct csf_hdr *)page, len, kind, min))
		return page;
	munmap(page, len);
	errno = EPROTO;
	return NULL;
}

/* Map a whole file of the mount. The page, or NULL with errno. */
static inline void *csf_map_(const char *path, unsigned int kind, size_t min, size_t *len)
{
	struct stat st;
	long fd;

	fd = csf_sys_(SYS_openat, CSF_AT_FDCWD_, (long)path, CSF_O_CLOEXEC_, 0, 0);
	if (fd < 0) {
		errno = (int)-fd;
		return NULL;
	}
	if (fstat((int)fd, &st)) {
		csf_sys_(SYS_close, fd, 0, 0, 0, 0);
		return NULL;
	}
	*len = (size_t)st.st_size;
	return csf_map_fd_(fd, kind, min, *len);
}

/* ---- statpage serve ---- */

/* How long an answer may take; a struct timeval. */
static inline void csf_patience_(long sock)
{
	const long limit[2] = {10, 0};

	csf_sys_(SYS_setsockopt, sock, SOL_SOCKET, SO_RCVTIMEO, (long)limit, sizeof(limit));
}

/* A socket at whose other end the server is, or -errno; -ENOENT: there is none. */
static inline long csf_connect_(void)
{
	struct sockaddr_un sun;
	long sock, ret;

	memset(&sun, 0, sizeof(sun));
	sun.sun_family = AF_UNIX;
	memcpy(sun.sun_path, CSF_SOCKET_PATH, sizeof(CSF_SOCKET_PATH));
	sock = csf_sys_(SYS_socket, AF_UNIX, CSF_SOCK_SEQPACKET_ | CSF_O_CLOEXEC_, 0, 0, 0);
	if (sock < 0)
		return sock;
	csf_patience_(sock);
	ret = csf_sys_(SYS_connect, sock, (long)&sun, sizeof(sun), 0, 0);
	if (!ret)
		return sock;
	csf_sys_(SYS_close, sock, 0, 0, 0, 0);
	/* A socket that nobody listens on is as good as none. */
	return ret == -ECONNREFUSED ? -ENOENT : ret;
}

/* The descriptor that comes with the answer, or -errno. pid 0: the thread is the caller's process's. */
static inline long csf_ask_for_(long sock, uint32_t pid, uint32_t tid)
{
	struct csf_serve_request request;
	struct csf_serve_reply reply;
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr msg;
	struct iovec iov;
	long n;
	int fd;

	memset(&request, 0, sizeof(request));
	request.magic = CSF_MAGIC;
	request.abi = CSF_ABI_VERSION;
	request.kind = CSF_KIND_THREAD;
	request.tid = tid;
	request.pid = pid;
	n = csf_sys_(SYS_sendto, sock, (long)&request, sizeof(request), CSF_MSG_NOSIGNAL_, 0);
	if (n < 0)
		return n;
	memset(&reply, 0, sizeof(reply));
	memset(&msg, 0, sizeof(msg));
	memset(&control, 0, sizeof(control));
	iov.iov_base = &reply;
	iov.iov_len = sizeof(reply);
	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_control = &control;
	msg.msg_controllen = sizeof(control);
	n = csf_sys_(SYS_recvmsg, sock, (long)&msg, CSF_MSG_CMSG_CLOEXEC_, 0, 0);
	if (n < 0)
		return n == -EAGAIN ? -ETIMEDOUT : n;
	if (n != sizeof(reply) || reply.magic != CSF_MAGIC)
		return -EPROTO;
	if (reply.error)
		return -(long)reply.error;
	if (msg.msg_controllen < CMSG_LEN(sizeof(int)) || control.head.cmsg_level != SOL_SOCKET ||
	    control.head.cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	return fd;
}

/* The same of the calling thread. */
static inline long csf_ask_(long sock)
{
	return csf_ask_for_(sock, 0, csf_gettid_());
}

/* More than it takes, see csf_switch_(). */
#define CSF_SWITCHES_ 40

/*
 * Have the calling thread switched off its CPU and back, which is when the server's program writes. The nth
 * time it takes a little longer: the shortest nap may be over before it has begun, and it shall not be
 * again between the same two threads.
 */
static inline void csf_switch_(int n)
{
	struct timespec nap;

	nap.tv_sec = 0;
	nap.tv_nsec = n < 4 ? 1 : 20000 * n;
	csf_sys_(SYS_nanosleep, (long)&nap, 0, 0, 0, 0);
}

/* A page begins when its thread is next switched to, which may have happened in the call above, or not. */
static inline int csf_begin_(const struct csf_thread *pg)
{
	int i;

	for (i = 0; i < CSF_SWITCHES_ && !__atomic_load_n(&pg->start_tsc, __ATOMIC_ACQUIRE); i++)
		csf_switch_(i);
	return __atomic_load_n(&pg->start_tsc, __ATOMIC_ACQUIRE) ? 0 : csf_fail_(EAGAIN);
}

/* The caller's page from the server. Signals are blocked. NULL with errno. */
static inline void *csf_map_served_(size_t *len)
{
	long sock = csf_connect_(), fd;
	void *page;

	if (sock < 0) {
		errno = (int)-sock;
		return NULL;
	}
	fd = csf_ask_(sock);
	csf_sys_(SYS_close, sock, 0, 0, 0, 0);
	if (fd < 0) {
		errno = (int)-fd;
		return NULL;
	}
	*len = CSF_SERVE_BYTES;
	page = csf_map_fd_(fd, CSF_KIND_THREAD, CSF_THREAD_MIN_, *len);
	if (!page || !csf_begin_((const struct csf_thread *)page))
		return page;
	munmap(page, *len);
	errno = EAGAIN;
	return NULL;
}

/* The caller's page: of the filesystem, or where it is not mounted from the server. NULL with errno. */
static inline void *csf_map_self_(size_t *len)
{
	void *page = csf_map_(CSF_MOUNT_PATH "/thread-self", CSF_KIND_THREAD, CSF_THREAD_MIN_, len);

	return page || errno != ENOENT ? page : csf_map_served_(len);
}

/* glibc allocates memory for the values of keys from here on, which a signal handler must not. */
#ifdef __GLIBC__
#define CSF_KEYS_ 32
#else
#define CSF_KEYS_ UINT32_MAX
#endif

/* The value is not used: in a forked child it is of the parent's epoch. */
static inline void csf_thread_exit_(void *unused)
{
	struct csf_self_ *self = &csf_self_v1_, was = *self;

	(void)unused;
	self->ending = 1;
	__atomic_store_n(&self->fast, CSF_UNMAPPED_, __ATOMIC_RELAXED);
	__atomic_store_n(&self->epoch, CSF_UNMAPPED_, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (was.epoch != csf_epoch_())
		return;
	csf_slot_unmap_(was.slot);
	__atomic_store_n(&was.slot->page, (void *)NULL, __ATOMIC_RELEASE);
}

/*
 * Whether csf_thread_exit_() will run at this thread's end. Not after it has: a signal handler may
 * call us while the thread is on its way out.
 */
static inline int csf_hook_(struct csf_self_ *self)
{
	struct csf_proc_ *proc = &csf_proc_v1_;
	uint32_t key = __atomic_load_n(&proc->key, __ATOMIC_ACQUIRE);
	pthread_key_t mine;

	if (self->ending)
		return 0;
	if (!key && !pthread_key_create(&mine, csf_thread_exit_)) {
		if (__atomic_compare_exchange_n(&proc->key, &key, (uint32_t)mine + 1, 0,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			key = (uint32_t)mine + 1;
		else
			pthread_key_delete(mine);
	}
	return key && key - 1 < CSF_KEYS_ && !pthread_setspecific((pthread_key_t)(key - 1), self);
}

/* Map the caller's page unless a signal handler was faster. Signals are blocked. */
static inline int csf_thread_open_(struct csf_self_ *self)
{
	struct csf_chunk_ *c = csf_process_();
	const struct csf_thread *pg;
	struct csf_slot_ *slot;
	size_t len;
	void *page;

	if (!c)
		return -1;
	if (self->epoch == csf_epoch_())
		return 0;
	page = csf_map_self_(&len);
	if (!page)
		return -1;
	pg = (const struct csf_thread *)page;
	slot = csf_slot_new_(c);
	if (!slot) {
		munmap(page, len);
		return -1;
	}
	__atomic_store_n(&slot->len, csf_hook_(self) ? len : len + CSF_UNHOOKED_, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->page, page, __ATOMIC_RELEASE);
	self->page = pg;
	self->slot = slot;
	self->aux_mask = pg->hdr.flags & CSF_F_TSC_AUX ? 0xfff : 0;
	self->epoch = csf_epoch_();
	if (pg->hdr.clock == CSF_CLOCK_TSC && pg->hdr.size >= sizeof(*pg))
		self->fast = self->epoch;
	return 0;
}

/* The page of a thread that has an epoch; tells the compiler, and who checks the code, that it is there. */
static inline const struct csf_thread *csf_self_page_(const struct csf_self_ *self)
{
	if (!self->page)
		__builtin_unreachable();
	return self->page;
}

/* Put the caller's own page where a page is that has ended: nobody finds the address unmapped. */
static inline int csf_thread_reopen_(struct csf_self_ *self)
{
	const struct csf_thread *ended = csf_self_page_(self);
	const struct csf_slot_ *slot = self->slot;
	size_t len;
	void *pg;

	pg = csf_map_self_(&len);
	if (!pg)
		return -1;
	if (slot && len == (slot->len & ~CSF_UNHOOKED_) &&
	    csf_sys_(SYS_mremap, (long)pg, (long)len, (long)len,
		     CSF_MREMAP_MAYMOVE_ | CSF_MREMAP_FIXED_, (long)ended) >= 0)
		return 0;
	munmap(pg, len);
	return csf_fail_(EPROTO);
}

static inline int csf_thread_setup_(struct csf_self_ *self, int reopen)
{
	uint64_t all = UINT64_MAX, old;
	int ret;

	csf_sys_(SYS_rt_sigprocmask, CSF_SIG_BLOCK_, (long)&all, (long)&old, sizeof(all), 0);
	ret = reopen ? csf_thread_reopen_(self) : csf_thread_open_(self);
	csf_sys_(SYS_rt_sigprocmask, CSF_SIG_SETMASK_, (long)&old, 0, sizeof(old), 0);
	return ret;
}

/* The process's mapping of the cpu page, or NULL with errno. */
static inline const struct csf_cpu *csf_cpu_page_(size_t *len)
{
	struct csf_chunk_ *c = csf_process_();
	void *page, *none = NULL;

	if (!c)
		return NULL;
	page = __atomic_load_n(&c->cpu_page, __ATOMIC_ACQUIRE);
	if (page) {
		*len = __atomic_load_n(&c->cpu_len, __ATOMIC_RELAXED);
		return (const struct csf_cpu *)page;
	}
	page = csf_map_(CSF_MOUNT_PATH "/cpu", CSF_KIND_CPU, sizeof(struct csf_cpu), len);
	if (!page)
		return NULL;
	__atomic_store_n(&c->cpu_len, *len, __ATOMIC_RELAXED);
	if (!__atomic_compare_exchange_n(&c->cpu_page, &none, page, 0, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE)) {
		munmap(page, *len);
		page = none;
	}
	return (const struct csf_cpu *)page;
}

static inline void csf_cpu_unmap_(void)
{
	struct csf_chunk_ *c = __atomic_load_n(&csf_proc_v1_.first, __ATOMIC_ACQUIRE);
	void *page = c ? __atomic_exchange_n(&c->cpu_page, (void *)NULL, __ATOMIC_ACQ_REL) : NULL;

	if (page)
		munmap(page, c->cpu_len);
}

/*
 * dlclose() must unmap and forget all; exit() must not, since other threads may still run in
 * here. exit() calls what atexit() registered before it calls destructors, dlclose() the other
 * way round. A program needs neither.
 */
#if defined(__PIC__) && !defined(__PIE__)
static inline void csf_exiting_(void)
{
	__atomic_store_n(&csf_proc_v1_.exiting, 1, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void csf_load_(void)
{
	if (!__atomic_exchange_n(&csf_proc_v1_.loaded, 1, __ATOMIC_ACQ_REL) && atexit(csf_exiting_))
		csf_exiting_();
}

__attribute__((destructor)) static void csf_unload_(void)
{
	struct csf_proc_ *proc = &csf_proc_v1_;
	struct csf_chunk_ *c = proc->first, *next;
	struct csf_slot_ *slot;

	if (proc->exiting)
		return;
	if (proc->key)
		pthread_key_delete((pthread_key_t)(proc->key - 1));
	csf_cpu_unmap_();
	for (; c; c = next) {
		next = c->next;
		for (slot = c->slot; slot < c->slot + CSF_NR_SLOTS_; slot++)
			if (slot->page && slot->page != slot)
				csf_slot_unmap_(slot);
		munmap(c, sizeof(*c));
	}
	/* For the translation units whose destructors follow. */
	proc->epoch = &proc->never;
	proc->first = NULL;
	proc->key = 0;
}
#endif

#ifdef __cplusplus
}
#endif

#endif /* LIB_CSF_MAP_H */
