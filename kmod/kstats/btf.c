// SPDX-License-Identifier: GPL-2.0
/*
 * How many words of stack arguments does a function of the kernel take? The kernel's own type
 * information says it, but has no interface for modules; so we read it where user space does.
 */
#include <linux/bits.h>
#include <linux/btf.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>

#include "node.h"

#define ARG_REGS 6 /* x86-64 */

struct btf_file {
	char *data;
	size_t size;
	const char *types, *types_end, *str, *str_end;
	u32 *offset; /* of each type from types, by id */
	u32 nr;
};

/* Bytes that follow a type's struct btf_type. */
static size_t trailer(const struct btf_type *t)
{
	u32 n = BTF_INFO_VLEN(t->info);

	switch (BTF_INFO_KIND(t->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(u32);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return n * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return n * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return n * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return n * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return n * sizeof(struct btf_var_secinfo);
	default:
		return 0;
	}
}

static const struct btf_type *type_at(const struct btf_file *b, u32 id)
{
	return id && id < b->nr ? (const void *)(b->types + b->offset[id]) : NULL;
}

static int read_file(struct btf_file *b)
{
	struct file *file = filp_open("/sys/kernel/btf/vmlinux", O_RDONLY, 0);
	loff_t pos = 0;
	ssize_t got;

	if (IS_ERR(file))
		return PTR_ERR(file);
	b->size = i_size_read(file_inode(file));
	b->data = b->size && b->size < SZ_64M ? kvmalloc(b->size, GFP_KERNEL) : NULL;
	while (b->data && pos < b->size) {
		got = kernel_read(file, b->data + pos, b->size - pos, &pos);
		if (got <= 0)
			break;
	}
	filp_close(file, NULL);
	return b->data && pos == b->size ? 0 : -EIO;
}

/* Find the sections, and each type's place. */
static int index_types(struct btf_file *b)
{
	const struct btf_header *h = (void *)b->data;
	const struct btf_type *t;
	const char *at, *end = b->data + b->size;
	u32 n = 1;

	if (b->size < sizeof(*h) || h->magic != BTF_MAGIC)
		return -EINVAL;
	b->types = b->data + h->hdr_len + h->type_off;
	b->types_end = b->types + h->type_len;
	b->str = b->data + h->hdr_len + h->str_off;
	b->str_end = b->str + h->str_len;
	if (b->types_end > end || b->str_end > end || !h->str_len || b->str_end[-1])
		return -EINVAL;
	b->offset = kvmalloc_array(h->type_len / sizeof(*t) + 1, sizeof(u32), GFP_KERNEL);
	if (!b->offset)
		return -ENOMEM;
	for (at = b->types; at + sizeof(*t) <= b->types_end; at += sizeof(*t) + trailer(t)) {
		t = (const void *)at;
		b->offset[n++] = at - b->types;
	}
	b->nr = n;
	return at == b->types_end ? 0 : -EINVAL;
}

/* Bytes of a parameter or a result; 0: not known. */
static u32 param_size(const struct btf_file *b, u32 id)
{
	const struct btf_type *t;
	int depth;

	for (depth = 0; depth < 32; depth++) {
		t = type_at(b, id);
		if (!t)
			return 0;
		switch (BTF_INFO_KIND(t->info)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_CONST:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG:
			id = t->type;
			break;
		case BTF_KIND_PTR:
			return sizeof(void *);
		case BTF_KIND_INT:
		case BTF_KIND_ENUM:
		case BTF_KIND_ENUM64:
		case BTF_KIND_STRUCT:
		case BTF_KIND_UNION:
			return t->size;
		default:
			return 0;
		}
	}
	return 0;
}

/* Words on the stack by the System V ABI, or -ENOENT where the type does not tell. */
static int proto_words(const struct btf_file *b, u32 id)
{
	const struct btf_type *t = type_at(b, id);
	const struct btf_param *p = (const void *)(t + 1);
	u32 i, n, size, regs, words = 0;

	if (!t || BTF_INFO_KIND(t->info) != BTF_KIND_FUNC_PROTO)
		return -ENOENT;
	/* A large result is returned through a pointer that takes the first register. */
	regs = t->type && param_size(b, t->type) > 16;
	for (i = 0; i < BTF_INFO_VLEN(t->info); i++) {
		size = p[i].type ? param_size(b, p[i].type) : 0; /* type 0: "..." */
		if (!size)
			return -ENOENT;
		n = DIV_ROUND_UP(size, 8);
		if (n <= 2 && regs + n <= ARG_REGS)
			regs += n;
		else
			words += n + (n == 2); /* 16 bytes may be aligned */
	}
	return words;
}

static int name_words(const struct btf_file *b, const char *name, size_t len)
{
	const struct btf_type *t;
	int words = -ENOENT, w;
	const char *s;
	u32 id;

	for (id = 1; id < b->nr; id++) {
		t = type_at(b, id);
		if (BTF_INFO_KIND(t->info) != BTF_KIND_FUNC)
			continue;
		s = b->str + t->name_off;
		if (s >= b->str_end || strncmp(s, name, len) || s[len])
			continue;
		w = proto_words(b, t->type);
		if (w < 0)
			return w;
		words = max(words, w); /* several functions may have one name */
	}
	return words;
}

int kstats_stack_words(const char *name, size_t len)
{
	struct btf_file b = {};
	int ret;

	ret = read_file(&b);
	if (!ret)
		ret = index_types(&b);
	if (!ret)
		ret = name_words(&b, name, len);
	kvfree(b.offset);
	kvfree(b.data);
	return ret < 0 ? -ENOENT : ret;
}
