// Loaded with LD_PRELOAD: records every change that a program makes below POWER_CUT_DIRECTORY, and its fsyncs, in the
// file POWER_CUT_RECORDING (recording.h), in one order over all processes and threads: a lock on the file is held from
// before a change until it is recorded. fsync is recorded and not done. Logs and emulated links (logs/, links/) are
// left out: nothing reads them after a restart. Changes by other calls are found by replay, which must end with the
// directory as it is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name, ...) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__)

struct record {
  int64_t operation, inode, offset, first_path, second_path, data;  // the last three are lengths
};

static int lock_recording(void) {
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, getenv("POWER_CUT_RECORDING"), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0 || flock(fd, LOCK_EX) != 0) abort();
  return fd;
}

static void unlock(int fd) {
  const int error = errno;
  syscall(SYS_close, fd);
  errno = error;
}

static void record(int fd, char operation, int64_t inode, int64_t offset, const char* first, const char* second,
                   const void* data, size_t bytes) {
  const int error = errno;
  const struct record header = {operation, inode, offset, (int64_t)strlen(first), (int64_t)strlen(second), (int64_t)bytes};
  const struct iovec parts[] = {{(void*)&header, sizeof header},
                                {(void*)first, strlen(first)},
                                {(void*)second, strlen(second)},
                                {(void*)data, bytes}};
  if (syscall(SYS_writev, fd, parts, 4) != (long)(sizeof header + strlen(first) + strlen(second) + bytes)) abort();
  errno = error;
}

static int is_below(const char* path) {
  const char* directory = getenv("POWER_CUT_DIRECTORY");
  if (directory == NULL || getenv("POWER_CUT_RECORDING") == NULL) return 0;
  const size_t length = strlen(directory);
  return strncmp(path, directory, length) == 0 && path[length] == '/' && strstr(path, "/logs") == NULL &&
         strstr(path, "/links") == NULL;
}

// Whether the path is to be recorded; then `out` is it, absolute and without empty parts.
static int tracked(int at, const char* path, char* out) {
  char joined[2 * PATH_MAX] = "";
  if (path[0] != '/') {
    char link[64];
    snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
    const ssize_t n = readlink(link, joined, PATH_MAX);
    if (n <= 0) return 0;
    joined[n] = '\0';
    strcat(joined, "/");
  }
  strncat(joined, path, PATH_MAX - 1);
  size_t length = 0;
  for (const char* from = joined; *from != '\0' && length < PATH_MAX - 1; ++from) {
    if (from[0] == '/' && (from[1] == '/' || from[1] == '\0')) continue;
    if (from[0] == '/' && from[1] == '.' && (from[2] == '/' || from[2] == '\0')) {
      ++from;
      continue;
    }
    out[length++] = *from;
  }
  out[length] = '\0';
  return is_below(out);
}

static int tracked_fd(int fd, struct stat* status, char* out) {
  const int error = errno;
  int result = 0;
  if (getenv("POWER_CUT_RECORDING") != NULL && fstat(fd, status) == 0 && (S_ISREG(status->st_mode) || S_ISDIR(status->st_mode))) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, out, PATH_MAX - 1);
    if (n > 0) {
      out[n] = '\0';
      char directory[PATH_MAX + 1];
      snprintf(directory, sizeof directory, "%s/", out);
      result = is_below(S_ISDIR(status->st_mode) ? directory : out) || strcmp(out, getenv("POWER_CUT_DIRECTORY")) == 0;
    }
  }
  errno = error;
  return result;
}

static int64_t inode_of(const char* path) {
  struct stat status;
  const int error = errno;
  const int64_t inode = lstat(path, &status) == 0 ? (int64_t)status.st_ino : 0;
  errno = error;
  return inode;
}

static int open_recorded(int at, const char* path, int flags, mode_t mode) {
  char full[2 * PATH_MAX];
  if ((flags & (O_CREAT | O_TRUNC)) == 0 || !tracked(at, path, full))
    return (int)syscall(SYS_openat, at, path, flags, mode);
  const int log = lock_recording();
  const int64_t before = inode_of(full);
  const int fd = (int)syscall(SYS_openat, at, path, flags, mode);
  if (fd >= 0 && before == 0) record(log, 'c', inode_of(full), 0, full, "", NULL, 0);
  if (fd >= 0 && before != 0 && (flags & O_TRUNC) != 0) record(log, 't', before, 0, "", "", NULL, 0);
  unlock(log);
  return fd;
}

#define OPEN(name)                             \
  int name(const char* path, int flags, ...) { \
    va_list rest;                              \
    va_start(rest, flags);                     \
    const mode_t mode = va_arg(rest, mode_t);  \
    va_end(rest);                              \
    return open_recorded(AT_FDCWD, path, flags, mode); \
  }
OPEN(open)
OPEN(open64)
#define OPENAT(name)                                   \
  int name(int at, const char* path, int flags, ...) { \
    va_list rest;                                      \
    va_start(rest, flags);                             \
    const mode_t mode = va_arg(rest, mode_t);          \
    va_end(rest);                                      \
    return open_recorded(at, path, flags, mode);       \
  }
OPENAT(openat)
OPENAT(openat64)

// Standard streams of C++ open files this way; the library then writes with write() and writev().
#define FOPEN(name)                                                                            \
  FILE* name(const char* path, const char* mode) {                                             \
    char full[2 * PATH_MAX];                                                                   \
    if (mode[0] == 'r' || !tracked(AT_FDCWD, path, full)) return REAL(name, path, mode);       \
    const int log = lock_recording();                                                          \
    const int64_t before = inode_of(full);                                                     \
    FILE* file = REAL(name, path, mode);                                                       \
    if (file != NULL && before == 0) record(log, 'c', inode_of(full), 0, full, "", NULL, 0);   \
    if (file != NULL && before != 0 && mode[0] == 'w') record(log, 't', before, 0, "", "", NULL, 0); \
    unlock(log);                                                                               \
    return file;                                                                               \
  }
FOPEN(fopen)
FOPEN(fopen64)

static ssize_t write_recorded(int fd, const void* data, size_t bytes, int64_t offset) {
  struct stat status;
  char path[PATH_MAX];
  if (!tracked_fd(fd, &status, path))
    return offset < 0 ? syscall(SYS_write, fd, data, bytes) : syscall(SYS_pwrite64, fd, data, bytes, offset);
  const int log = lock_recording();
  int64_t at = offset;
  if (at < 0) {
    fstat(fd, &status);
    at = (fcntl(fd, F_GETFL) & O_APPEND) != 0 ? (int64_t)status.st_size : (int64_t)lseek(fd, 0, SEEK_CUR);
  }
  const ssize_t n = offset < 0 ? syscall(SYS_write, fd, data, bytes) : syscall(SYS_pwrite64, fd, data, bytes, offset);
  if (n > 0) record(log, 'w', (int64_t)status.st_ino, at, "", "", data, (size_t)n);
  unlock(log);
  return n;
}

ssize_t write(int fd, const void* data, size_t bytes) { return write_recorded(fd, data, bytes, -1); }
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) { return write_recorded(fd, data, bytes, at); }
ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t at) { return write_recorded(fd, data, bytes, at); }
ssize_t writev(int fd, const struct iovec* parts, int count) {
  struct stat status;
  char path[PATH_MAX];
  if (!tracked_fd(fd, &status, path)) return syscall(SYS_writev, fd, parts, count);
  ssize_t done = 0;
  for (int i = 0; i < count; ++i) {
    const ssize_t n = write_recorded(fd, parts[i].iov_base, parts[i].iov_len, -1);
    if (n < 0) return done > 0 ? done : n;
    done += n;
    if ((size_t)n < parts[i].iov_len) break;
  }
  return done;
}

static int resize_recorded(int fd, int64_t bytes, int allocate) {
  struct stat status;
  char path[PATH_MAX];
  const int known = tracked_fd(fd, &status, path);
  const int log = known ? lock_recording() : -1;
  const int result = (int)(allocate ? syscall(SYS_fallocate, fd, 0, 0L, bytes) : syscall(SYS_ftruncate, fd, bytes));
  if (known && result == 0) record(log, allocate ? 'a' : 't', (int64_t)status.st_ino, bytes, "", "", NULL, 0);
  if (known) unlock(log);
  return result;
}
int ftruncate(int fd, off_t bytes) { return resize_recorded(fd, bytes, 0); }
int ftruncate64(int fd, off64_t bytes) { return resize_recorded(fd, bytes, 0); }
int fallocate64(int fd, int mode, off64_t at, off64_t bytes) {
  if (mode != 0 || at != 0) abort();
  return resize_recorded(fd, bytes, 1);
}
int fallocate(int fd, int mode, off_t at, off_t bytes) { return fallocate64(fd, mode, at, bytes); }

#define NAMES(operation, at, path, at2, path2, offset, call)                       \
  char first[2 * PATH_MAX], second[2 * PATH_MAX] = "";                             \
  const int known = tracked(at, path, first);                                      \
  if (tracked(at2, path2, second) != known) abort(); /* into the directory, or out of it */ \
  const int log = known ? lock_recording() : -1;                                   \
  const int64_t inode = known ? inode_of(first) : 0;                               \
  const int result = (int)(call);                                                  \
  if (known && result == 0) record(log, operation, inode != 0 ? inode : inode_of(first), offset, first, second, NULL, 0); \
  if (known) unlock(log);                                                          \
  return result;

int renameat2(int at, const char* from, int at2, const char* to, unsigned flags) {
  if (flags == RENAME_EXCHANGE && getenv("POWER_CUT_NO_EXCHANGE") != NULL) {
    errno = EINVAL;
    return -1;
  }
  NAMES('r', at, from, at2, to, flags, syscall(SYS_renameat2, at, from, at2, to, flags))
}
int rename(const char* from, const char* to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int at, const char* from, int at2, const char* to) { return renameat2(at, from, at2, to, 0); }
int link(const char* from, const char* to) {
  NAMES('l', AT_FDCWD, from, AT_FDCWD, to, 0, syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0))
}
int unlinkat(int at, const char* path, int flags) {
  NAMES('u', at, path, at, path, 0, syscall(SYS_unlinkat, at, path, flags))
}
int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) {
  const int result = unlink(path);
  return result != 0 && errno == EISDIR ? rmdir(path) : result;
}
int mkdirat(int at, const char* path, mode_t mode) {
  NAMES('d', at, path, at, path, 0, syscall(SYS_mkdirat, at, path, mode))
}
int mkdir(const char* path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int fsync(int fd) {
  struct stat status;
  char path[PATH_MAX];
  if (!tracked_fd(fd, &status, path)) return (int)syscall(SYS_fsync, fd);
  const int log = lock_recording();
  record(log, 's', (int64_t)status.st_ino, 0, path, "", NULL, 0);
  unlock(log);
  return 0;
}
int fdatasync(int fd) { return fsync(fd); }

// Files that are changed through memory cannot be recorded.
void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t at) {
  struct stat status;
  char path[PATH_MAX];
  if (fd >= 0 && (flags & MAP_SHARED) != 0 && (protection & PROT_WRITE) != 0 && tracked_fd(fd, &status, path)) abort();
  return (void*)syscall(SYS_mmap, address, bytes, protection, flags, fd, at);
}
