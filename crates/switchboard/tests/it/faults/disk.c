/* Replaces the functions of the C library that write files and lets them fail on command, for the files of SQLite only.
 *
 * FAULT_FOLDER names a folder; a fault lasts while its file exists there. Nothing here allocates, and the real calls go
 * straight to the kernel, so that this works with any allocator and any other library.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SYNC_FAILS, SYNC_FAILS_ONCE, SYNC_HANGS, DISK_IS_FULL, FAULTS };

static const char *const names[FAULTS] = {"sync-fails", "sync-fails-once", "sync-hangs", "disk-is-full"};
static char paths[FAULTS][PATH_MAX];

__attribute__((constructor)) static void find_files(void) {
    const char *folder = getenv("FAULT_FOLDER");
    for (int fault = 0; folder && fault < FAULTS; fault++)
        snprintf(paths[fault], PATH_MAX, "%s/%s", folder, names[fault]);
}

static int is_active(int fault) {
    return paths[fault][0] && access(paths[fault], F_OK) == 0;
}

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static int is_database(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return ends_with(path, ".db") || ends_with(path, ".db-wal") || ends_with(path, ".db-shm");
}

static int sync_is_refused(int fd) {
    if (is_active(SYNC_HANGS) && is_database(fd))
        while (is_active(SYNC_HANGS))
            usleep(1000);
    if ((is_active(SYNC_FAILS) && is_database(fd)) ||
        /* Only one caller can remove the file. */
        (is_active(SYNC_FAILS_ONCE) && is_database(fd) && unlink(paths[SYNC_FAILS_ONCE]) == 0)) {
        errno = EIO;
        return 1;
    }
    return 0;
}

static int write_is_refused(int fd) {
    if (is_active(DISK_IS_FULL) && is_database(fd)) {
        errno = ENOSPC;
        return 1;
    }
    return 0;
}

int fsync(int fd) { return sync_is_refused(fd) ? -1 : syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_is_refused(fd) ? -1 : syscall(SYS_fdatasync, fd); }

ssize_t write(int fd, const void *bytes, size_t count) {
    return write_is_refused(fd) ? -1 : syscall(SYS_write, fd, bytes, count);
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    return write_is_refused(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, count, at);
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    return write_is_refused(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, count, at);
}
int ftruncate(int fd, off_t length) { return write_is_refused(fd) ? -1 : syscall(SYS_ftruncate, fd, length); }
int ftruncate64(int fd, off64_t length) { return write_is_refused(fd) ? -1 : syscall(SYS_ftruncate, fd, length); }

int fallocate(int fd, int mode, off_t at, off_t length) {
    return write_is_refused(fd) ? -1 : syscall(SYS_fallocate, fd, mode, at, length);
}
int fallocate64(int fd, int mode, off64_t at, off64_t length) {
    return write_is_refused(fd) ? -1 : syscall(SYS_fallocate, fd, mode, at, length);
}
int posix_fallocate(int fd, off_t at, off_t length) { return fallocate(fd, 0, at, length) == 0 ? 0 : errno; }
int posix_fallocate64(int fd, off64_t at, off64_t length) { return fallocate(fd, 0, at, length) == 0 ? 0 : errno; }
