/* Writes down what a process asks of the disk below one folder: writes, syncs, renames. See power_loss.py.
   Loaded by LD_PRELOAD; POWER_FOLDER is the folder, POWER_LOG the log, POWER_AFTER the number of syncs to the cut. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long syncs = 0;

static int below(const char *path) {
    const char *folder = getenv("POWER_FOLDER");
    return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

static void note(const char *kind, const char *first, const char *second) {
    char line[2 * PATH_MAX + 8];
    const char *log = getenv("POWER_LOG");
    int size = snprintf(line, sizeof line, "%s\t%s\t%s\n", kind, first, second);
    int file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file >= 0) {
        syscall(SYS_write, file, line, size);
        syscall(SYS_close, file);
    }
}

static void cut(void) {
    const char *after = getenv("POWER_AFTER");
    if (after && ++syncs > atol(after)) syscall(SYS_exit_group, 137);
}

static int named(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return below(path);
}

static void absolute(const char *path, char *whole) {
    if (path[0] == '/') { snprintf(whole, PATH_MAX, "%s", path); return; }
    char here[PATH_MAX];
    snprintf(whole, PATH_MAX, "%s/%s", getcwd(here, sizeof here) ? here : "", path);
}

ssize_t write(int descriptor, const void *data, size_t size) {
    char path[PATH_MAX];
    ssize_t done = syscall(SYS_write, descriptor, data, size);
    if (done > 0 && descriptor > 2 && named(descriptor, path)) {
        pthread_mutex_lock(&lock);
        note("write", path, "");
        pthread_mutex_unlock(&lock);
    }
    return done;
}

static int synced(int descriptor, long number) {
    char path[PATH_MAX];
    if (!named(descriptor, path)) return syscall(number, descriptor);
    pthread_mutex_lock(&lock);
    cut();
    note("sync", path, "");
    pthread_mutex_unlock(&lock);
    return 0; /* the disk itself is not at stake */
}

int fsync(int descriptor) { return synced(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return synced(descriptor, SYS_fdatasync); }

void sync(void) {
    pthread_mutex_lock(&lock);
    cut();
    note("all", "", "");
    pthread_mutex_unlock(&lock);
}

int rename(const char *from, const char *to) {
    char first[PATH_MAX], second[PATH_MAX];
    absolute(from, first);
    absolute(to, second);
    pthread_mutex_lock(&lock);
    int done = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (!done && below(second)) note("rename", first, second);
    pthread_mutex_unlock(&lock);
    return done;
}
