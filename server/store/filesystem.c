/* filesystem.c - which file systems may not hold a store: those where another host can write to the same bytes,
 * since neither the lock nor the shared memory of a write-ahead log reaches over hosts. And which forget. Any thread, but the returned
 * name of filesystem_refused lives in a static table. */
#include "server/store/filesystem.h"

#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

/* Not in linux/magic.h. */
#define MAGIC_CIFS 0xFF534D42UL
#define MAGIC_GFS2 0x01161970UL
#define MAGIC_LUSTRE 0x0BD00BD0UL
#define MAGIC_OCFS2 0x7461636FUL
#define MAGIC_FUSE 0x65735546UL

static const struct filesystem_kind {
    unsigned long magic;
    const char *name;
} refused_kinds[] = {
    { NFS_SUPER_MAGIC, "nfs" },   { SMB_SUPER_MAGIC, "smb" },   { SMB2_SUPER_MAGIC, "smb2" },
    { MAGIC_CIFS, "cifs" },       { V9FS_MAGIC, "9p" },         { AFS_SUPER_MAGIC, "afs" },
    { AFS_FS_MAGIC, "afs" },      { CODA_SUPER_MAGIC, "coda" }, { NCP_SUPER_MAGIC, "ncp" },
    { CEPH_SUPER_MAGIC, "ceph" }, { MAGIC_GFS2, "gfs2" },       { MAGIC_LUSTRE, "lustre" },
    { MAGIC_OCFS2, "ocfs2" },
};

/* FUSE is refused by name: many of its file systems are local (ntfs-3g, fuse-overlayfs, encrypted folders). */
static const char *const refused_fuse_types[] = {
    "fuse.sshfs",   "fuse.glusterfs", "fuse.ceph",   "fuse.ceph-fuse",   "fuse.s3fs",     "fuse.rclone",
    "fuse.gcsfuse", "fuse.davfs",     "fuse.davfs2", "fuse.curlftpfs",   "fuse.smbnetfs", "fuse.juicefs",
    "fuse.moosefs", "fuse.mfs",       "fuse.goofys", "fuse.nfs-ganesha", "fuse.beegfs",   "fuse.afp",
};

const char *filesystem_refused_kind(unsigned long magic, const char *fuse_type)
{
    if (magic == MAGIC_FUSE) {
        for (size_t i = 0; i < sizeof refused_fuse_types / sizeof refused_fuse_types[0]; i++) {
            if (strcmp(fuse_type, refused_fuse_types[i]) == 0) {
                return refused_fuse_types[i];
            }
        }
        return NULL;
    }
    for (size_t i = 0; i < sizeof refused_kinds / sizeof refused_kinds[0]; i++) {
        if (magic == refused_kinds[i].magic) {
            return refused_kinds[i].name;
        }
    }
    return NULL;
}

/* A line: "36 35 98:0 /root /mount options optional... - type source options". */
void filesystem_mount_type(dev_t device, char *type, size_t room)
{
    char line[4096], wanted[32];
    type[0] = '\0';
    (void) snprintf(wanted, sizeof wanted, " %u:%u ", major(device), minor(device));
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    if (mounts == NULL) {
        return;
    }
    while (fgets(line, sizeof line, mounts) != NULL) {
        const char *tail = strstr(line, " - ");
        if (tail != NULL && strstr(line, wanted) != NULL) {
            size_t len = strcspn(tail + 3, " \n");
            if (len < room) {
                memcpy(type, tail + 3, len);
                type[len] = '\0';
            }
            break;
        }
    }
    (void) fclose(mounts);
}

const char *filesystem_refused(const char *path)
{
    struct statfs about;
    struct stat status;
    char type[64] = "";
    if (statfs(path, &about) != 0 || stat(path, &status) != 0) {
        return NULL;
    }
    unsigned long magic = (unsigned long) about.f_type & 0xFFFFFFFFUL;
    if (magic == MAGIC_FUSE) {
        filesystem_mount_type(status.st_dev, type, sizeof type);
    }
    return filesystem_refused_kind(magic, type);
}

const char *filesystem_volatile_kind(unsigned long magic)
{
    return magic == TMPFS_MAGIC ? "tmpfs" : magic == RAMFS_MAGIC ? "ramfs" : NULL;
}

const char *filesystem_volatile(const char *path)
{
    struct statfs about;
    return statfs(path, &about) == 0 ? filesystem_volatile_kind((unsigned long) about.f_type & 0xFFFFFFFFUL) : NULL;
}
