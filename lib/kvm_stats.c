/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/kvm.h>
#include <string.h>
#include <unistd.h>

#include "lib/kvm_stats.h"

int kvm_stats_read(int fd, struct kvm_stats *s)
{
	struct kvm_stats_header h;
	struct {
		struct kvm_stats_desc d;
		char name[64];
	} desc;

	s->nr = 0;
	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || h.name_size > sizeof(desc.name))
		return -EIO;
	for (uint32_t i = 0; i < h.num_desc && s->nr < KVM_STATS_MAX; i++) {
		size_t size = sizeof(desc.d) + h.name_size;
		uint64_t v;

		if (pread(fd, &desc, size, (off_t)(h.desc_offset + i * size)) != (ssize_t)size)
			return -EIO;
		desc.name[sizeof(desc.name) - 1] = '\0';
		if ((desc.d.flags & KVM_STATS_TYPE_MASK) != KVM_STATS_TYPE_CUMULATIVE ||
		    desc.d.size != 1)
			continue;
		if (pread(fd, &v, sizeof(v), (off_t)h.data_offset + desc.d.offset) != sizeof(v))
			return -EIO;
		memcpy(s->name[s->nr], desc.name, sizeof(s->name[0]));
		s->name[s->nr][sizeof(s->name[0]) - 1] = '\0';
		s->value[s->nr++] = v;
	}
	return 0;
}

static uint64_t *find(struct kvm_stats *s, const char *name)
{
	for (size_t i = 0; i < s->nr; i++)
		if (!strcmp(s->name[i], name))
			return &s->value[i];
	return NULL;
}

void kvm_stats_add(struct kvm_stats *dst, const struct kvm_stats *src)
{
	for (size_t i = 0; i < src->nr; i++) {
		uint64_t *v = find(dst, src->name[i]);

		if (v) {
			*v = rts_add(*v, src->value[i]);
		} else if (dst->nr < KVM_STATS_MAX) {
			memcpy(dst->name[dst->nr], src->name[i], sizeof(dst->name[0]));
			dst->value[dst->nr++] = src->value[i];
		}
	}
}

bool kvm_stats_halted(const struct kvm_stats *s, uint64_t *ns)
{
	/* Polling for the end of the halt comes before the wait, successful or not. */
	static const char *const parts[] = {"halt_wait_ns", "halt_poll_success_ns",
					    "halt_poll_fail_ns"};
	bool any = false;

	*ns = 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const uint64_t *v = find((struct kvm_stats *)s, parts[i]);

		if (v) {
			*ns = rts_add(*ns, *v);
			any = true;
		}
	}
	return any;
}
