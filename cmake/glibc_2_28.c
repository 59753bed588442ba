/* What libstdc++ of GCC 12 expects of the C library and glibc 2.28 lacks; linked into wheels only.
 */

#define _GNU_SOURCE
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* Of glibc 2.32: whether reference counts can do without atomic operations. */
HIDDEN char __libc_single_threaded = 0;

/* Of glibc 2.30. */
HIDDEN pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* Of glibc 2.30: waits until a time of another clock than that of the condition. */
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                  clockid_t clock, const struct timespec* until) {
    struct timespec now, real;
    clock_gettime(clock, &now);
    clock_gettime(CLOCK_REALTIME, &real);
    real.tv_sec += until->tv_sec - now.tv_sec;
    real.tv_nsec += until->tv_nsec - now.tv_nsec;
    if (real.tv_nsec < 0) {
        real.tv_sec -= 1;
        real.tv_nsec += 1000000000;
    } else if (real.tv_nsec >= 1000000000) {
        real.tv_sec += 1;
        real.tv_nsec -= 1000000000;
    }
    return pthread_cond_timedwait(condition, mutex, &real);
}
