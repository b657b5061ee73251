#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A disk that is slow, fails or loses its answers, made by rules. Preload it: LD_PRELOAD, with CLICKJOIN_DISK naming a
   file of rules, read at each call, one a line: CALL PATTERN WHAT ARGUMENT
     CALL: rename | link | fsync     PATTERN: fnmatch(3) of the target's whole path
     WHAT: sleep SECONDS | wait FILE (makes FILE.here, and waits until FILE is gone) | fail ERRNO | lose ERRNO (does it, then
     answers with an error) | once-fail, once-lose (FILE:ERRNO, as long as FILE is there, which it removes) | note FILE (appends the
     call and the path). All rules that match apply, in order. */

struct answer { int before, after; };

static void note(const char *file, const char *call, const char *path) {
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT, 0644);
    char line[4400];
    int n = snprintf(line, sizeof line, "%s %s\n", call, path);
    if (fd >= 0) { if (write(fd, line, n) < 0) {} close(fd); }
}

static void wait_for(const char *file) {
    char here[4300];
    snprintf(here, sizeof here, "%.4200s.here", file);
    int fd = open(here, O_CREAT | O_WRONLY, 0644);
    if (fd >= 0) close(fd);
    for (int i = 0; i < 60000 && access(file, F_OK) == 0; i++) usleep(2000);
}

/* 0 where the rule has been used up */
static int once(char *argument) {
    char *colon = strrchr(argument, ':');
    if (!colon) return 0;
    *colon = 0;
    return unlink(argument) == 0 ? atoi(colon + 1) : 0;
}

static void apply(const char *call, const char *path, const char *what, char *argument, struct answer *done) {
    if (!strcmp(what, "sleep")) usleep((useconds_t)(atof(argument) * 1e6));
    else if (!strcmp(what, "wait")) wait_for(argument);
    else if (!strcmp(what, "note")) note(argument, call, path);
    else if (!strcmp(what, "fail")) done->before = atoi(argument);
    else if (!strcmp(what, "lose")) done->after = atoi(argument);
    else if (!strcmp(what, "once-fail")) done->before = once(argument);
    else if (!strcmp(what, "once-lose")) done->after = once(argument);
}

static struct answer rules(const char *call, const char *path) {
    struct answer done = {0, 0};
    const char *file = getenv("CLICKJOIN_DISK");
    FILE *in = file ? fopen(file, "r") : NULL;
    char line[8400], named[16], pattern[4200], what[16], argument[4200];
    while (in && fgets(line, sizeof line, in))
        if (sscanf(line, "%15s %4199s %15s %4199s", named, pattern, what, argument) == 4 && !strcmp(named, call) &&
            !fnmatch(pattern, path, 0))
            apply(call, path, what, argument, &done);
    if (in) fclose(in);
    return done;
}

static int answered(struct answer done, int result) {
    if (result == 0 && done.after) { errno = done.after; return -1; }
    return result;
}

#define RULED(CALL, TARGET, NAME, TYPE, ARGUMENTS)                          \
    static TYPE real;                                                       \
    if (!real) real = (TYPE)dlsym(RTLD_NEXT, NAME);                         \
    struct answer done = rules(CALL, TARGET);                               \
    if (done.before) { errno = done.before; return -1; }                    \
    return answered(done, real ARGUMENTS);

typedef int (*two_paths)(const char *, const char *);
typedef int (*two_places)(int, const char *, int, const char *);
typedef int (*two_places_flags)(int, const char *, int, const char *, int);
typedef int (*renamer2)(int, const char *, int, const char *, unsigned);
typedef int (*of_handle)(int);

int rename(const char *from, const char *to) { RULED("rename", to, "rename", two_paths, (from, to)) }
int renameat(int a, const char *from, int b, const char *to) { RULED("rename", to, "renameat", two_places, (a, from, b, to)) }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    RULED("rename", to, "renameat2", renamer2, (a, from, b, to, flags))
}
int link(const char *from, const char *to) { RULED("link", to, "link", two_paths, (from, to)) }
int linkat(int a, const char *from, int b, const char *to, int flags) {
    RULED("link", to, "linkat", two_places_flags, (a, from, b, to, flags))
}

static const char *path_of(int fd, char *into, size_t size) {
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, into, size - 1);
    into[n > 0 ? n : 0] = 0;
    return into;
}

int fsync(int fd) {
    char path[4200];
    RULED("fsync", path_of(fd, path, sizeof path), "fsync", of_handle, (fd))
}
int fdatasync(int fd) {
    char path[4200];
    RULED("fsync", path_of(fd, path, sizeof path), "fdatasync", of_handle, (fd))
}
