// SPDX-License-Identifier: GPL-2.0
/*
 * The filesystem: two files, thread-self and cpu, that can be mapped read-only and do nothing else.
 */
#include "csf.h"
#include <linux/fs_context.h>
#include <linux/fs_parser.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/statfs.h>
#include <linux/sysfs.h>

struct workqueue_struct *csf_wq;

module_param_cb(period_us, &csf_period_ops, &csf_period_us, 0644);
MODULE_PARM_DESC(period_us, "refresh period of the cpu page in us, 500 to 1000000 (default 10000)");

struct csf_mount_opts {
	umode_t mode;
	kuid_t uid;
	kgid_t gid;
};

#define CSF_MODE 0444

enum { OPT_MODE, OPT_UID, OPT_GID };

static const struct fs_parameter_spec csf_params[] = {
	fsparam_u32oct("mode", OPT_MODE),
	fsparam_u32("uid", OPT_UID),
	fsparam_u32("gid", OPT_GID),
	{},
};

/*
 * Only reading makes sense; root passes the permission bits, so the mode is asked again here.
 * Returns 0 or -EACCES.
 */
int csf_open_check(const struct file *file)
{
	return file->f_mode & FMODE_WRITE ? -EACCES : 0;
}

/*
 * What may be mapped: shared, from offset 0, no longer than the file, and never to be written or executed,
 * not by a later mprotect() either. Returns 0, -EINVAL or -EPERM.
 */
int csf_mmap_check(struct vm_area_struct *vma, size_t bytes)
{
	/* MAP_SHARED of a file that is open for reading only has VM_MAYSHARE but not VM_SHARED. */
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_pgoff ||
	    vma->vm_end - vma->vm_start > PAGE_ALIGN(bytes))
		return -EINVAL;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EPERM;
	/*
	 * VM_IO: no GUP, so no other mm can pin the page, and MADV_DOFORK is refused. The pages
	 * themselves are ordinary ones and fault in again after MADV_DONTNEED.
	 */
	vm_flags_mod(vma, VM_IO | VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP,
		     VM_MAYWRITE | VM_MAYEXEC);
	return 0;
}

/* Root passes the permission bits, and a file cut short would be one that nobody can map. */
static int csf_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	return attr->ia_valid & ATTR_SIZE ? -EACCES : simple_setattr(idmap, dentry, attr);
}

static const struct inode_operations csf_inode_ops = {
	.setattr = csf_setattr,
};

static int csf_parse_param(struct fs_context *fc, struct fs_parameter *param)
{
	struct csf_mount_opts *opts = fc->s_fs_info;
	struct fs_parse_result res;
	int opt = fs_parse(fc, csf_params, param, &res);

	switch (opt) {
	case OPT_MODE:
		if (res.uint_32 & ~CSF_MODE)
			return invalfc(fc, "mode=%o: only read bits (0444) make sense",
				       res.uint_32);
		opts->mode = res.uint_32;
		return 0;
	case OPT_UID:
		opts->uid = make_kuid(fc->user_ns, res.uint_32);
		if (!uid_valid(opts->uid))
			return invalfc(fc, "uid=%u: no such user id", res.uint_32);
		return 0;
	case OPT_GID:
		opts->gid = make_kgid(fc->user_ns, res.uint_32);
		if (!gid_valid(opts->gid))
			return invalfc(fc, "gid=%u: no such group id", res.uint_32);
		return 0;
	default:
		return opt;
	}
}

/* Makes the files what the options say. A file that is open already stays so. */
static void csf_apply_opts(struct super_block *sb)
{
	const struct csf_mount_opts *opts = sb->s_fs_info;
	struct inode *inode;

	spin_lock(&sb->s_inode_list_lock);
	list_for_each_entry(inode, &sb->s_inodes, i_sb_list) {
		if (!S_ISREG(inode->i_mode))
			continue;
		inode->i_op = &csf_inode_ops;
		inode->i_mode = S_IFREG | opts->mode;
		inode->i_uid = opts->uid;
		inode->i_gid = opts->gid;
		i_size_write(inode,
			     inode->i_fop == &csf_cpu_fops ? (loff_t)csf_cpu_bytes() : PAGE_SIZE);
	}
	spin_unlock(&sb->s_inode_list_lock);
}

static int csf_show_options(struct seq_file *m, struct dentry *root)
{
	const struct csf_mount_opts *opts = root->d_sb->s_fs_info;

	if (opts->mode != CSF_MODE)
		seq_printf(m, ",mode=%04o", opts->mode);
	if (!uid_eq(opts->uid, GLOBAL_ROOT_UID))
		seq_printf(m, ",uid=%u", from_kuid_munged(&init_user_ns, opts->uid));
	if (!gid_eq(opts->gid, GLOBAL_ROOT_GID))
		seq_printf(m, ",gid=%u", from_kgid_munged(&init_user_ns, opts->gid));
	return 0;
}

static const struct super_operations csf_super_ops = {
	.statfs = simple_statfs,
	.show_options = csf_show_options,
};

static int csf_fill_super(struct super_block *sb, struct fs_context *fc)
{
	static const struct tree_descr files[] = {
		[2] = {"thread-self", &csf_thread_fops, CSF_MODE},
		[3] = {"cpu", &csf_cpu_fops, CSF_MODE},
		[4] = {""},
	};
	int ret;

	sb->s_iflags |= SB_I_NOEXEC | SB_I_NODEV;
	ret = simple_fill_super(sb, CSF_FS_MAGIC, files);
	if (ret)
		return ret;
	sb->s_op = &csf_super_ops;
	csf_apply_opts(sb);
	return 0;
}

static int csf_get_tree(struct fs_context *fc)
{
	return get_tree_nodev(fc, csf_fill_super);
}

static int csf_reconfigure(struct fs_context *fc)
{
	struct super_block *sb = fc->root->d_sb;

	memcpy(sb->s_fs_info, fc->s_fs_info, sizeof(struct csf_mount_opts));
	csf_apply_opts(sb);
	return 0;
}

/* NULL when a super block has taken the options over. */
static void csf_free_fc(struct fs_context *fc)
{
	kfree(fc->s_fs_info);
}

static const struct fs_context_operations csf_context_ops = {
	.parse_param = csf_parse_param,
	.get_tree = csf_get_tree,
	.reconfigure = csf_reconfigure,
	.free = csf_free_fc,
};

static int csf_init_fs_context(struct fs_context *fc)
{
	static const struct csf_mount_opts defaults = {
		.mode = CSF_MODE,
		.uid = KUIDT_INIT(0),
		.gid = KGIDT_INIT(0),
	};
	const void *from = fc->root ? fc->root->d_sb->s_fs_info : &defaults; /* remount: as it is */

	fc->s_fs_info = kmemdup(from, sizeof(defaults), GFP_KERNEL);
	if (!fc->s_fs_info)
		return -ENOMEM;
	fc->ops = &csf_context_ops;
	return 0;
}

static void csf_kill_sb(struct super_block *sb)
{
	kill_anon_super(sb);
	kfree(sb->s_fs_info);
}

static struct file_system_type csf_fs_type = {
	.owner = THIS_MODULE,
	.name = CSF_FS_NAME,
	.init_fs_context = csf_init_fs_context,
	.parameters = csf_params,
	.kill_sb = csf_kill_sb,
};

static int __init csf_init(void)
{
	int ret;

	csf_wq = alloc_workqueue(CSF_FS_NAME, WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!csf_wq)
		return -ENOMEM;
	ret = csf_clock_init();
	if (ret)
		goto err_destroy_wq;
	ret = csf_cpu_init();
	if (ret)
		goto err_clock_exit;
	ret = csf_thread_init();
	if (ret)
		goto err_cpu_exit;
	ret = sysfs_create_mount_point(kernel_kobj, CSF_FS_NAME);
	if (ret)
		goto err_thread_exit;
	ret = register_filesystem(&csf_fs_type);
	if (ret)
		goto err_remove_mount_point;
	return 0;

err_remove_mount_point:
	sysfs_remove_mount_point(kernel_kobj, CSF_FS_NAME);
err_thread_exit:
	csf_thread_exit();
err_cpu_exit:
	csf_cpu_exit();
err_clock_exit:
	csf_clock_exit();
err_destroy_wq:
	destroy_workqueue(csf_wq);
	return ret;
}

/* No super block, file or object is left here: each of them holds the module. */
static void __exit csf_exit(void)
{
	unregister_filesystem(&csf_fs_type);
	sysfs_remove_mount_point(kernel_kobj, CSF_FS_NAME);
	csf_thread_exit();
	csf_cpu_exit();
	csf_clock_exit();
	/* Waits for the work that put the last reference to this module and is on its way out. */
	destroy_workqueue(csf_wq);
}

module_init(csf_init);
module_exit(csf_exit);
MODULE_ALIAS_FS(CSF_FS_NAME);
MODULE_DESCRIPTION("Wall-time accounting of a thread, readable with no system call");
MODULE_LICENSE("GPL");
