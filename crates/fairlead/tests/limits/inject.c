// Makes calls of the kernel fail in the program under test, into which LD_PRELOAD loads it. The file that FAIRLEAD_FAULTS names is
// shared with the test: for each class of calls it says which error they get, from which call on, how often, and how many calls there
// were and how many failed (faults.rs, `Faults`).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

// In the order of `Class` in faults.rs.
enum class {
  NETLINK_SOCKET,
  NETLINK_SEND,
  NETLINK_RECEIVE,
  SOCKET,
  ACCEPT,
  CONNECT,
  DATAGRAM_SEND,
  DATAGRAM_RECEIVE,
  STREAM_SEND,
  STREAM_RECEIVE,
  FILE_OPEN,
  EPOLL_ADD,
  PIPE,
  CLASSES,
};

struct fault {
  _Atomic int32_t error, from, times, calls, failed;
};

static struct fault nothing[CLASSES], *faults = nothing;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("FAIRLEAD_FAULTS");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *shared = mmap(NULL, sizeof nothing, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (shared != MAP_FAILED) faults = shared;
}

// True if this call is to fail; errno is set then.
static int fails(int class) {
  if (class < 0) return 0;
  struct fault *fault = &faults[class];
  int32_t call = atomic_fetch_add(&fault->calls, 1), error = atomic_load(&fault->error);
  int32_t from = atomic_load(&fault->from);
  if (!error || call < from || call >= from + atomic_load(&fault->times)) return 0;
  atomic_fetch_add(&fault->failed, 1);
  errno = error;
  return 1;
}

// The class of a call on a descriptor, -1 for none, by the kind of socket.
static int by_socket(int fd, int netlink, int datagram, int stream) {
  int saved = errno, domain = 0, type = 0;
  socklen_t length = sizeof domain;
  int known = getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0;
  length = sizeof type;
  known = known && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0;
  errno = saved;
  if (!known) return -1;
  if (domain == AF_NETLINK) return netlink;
  if (domain != AF_INET && domain != AF_INET6 && domain != AF_PACKET) return -1;
  return type == SOCK_STREAM ? stream : datagram;
}

#define REAL(name) \
  static __typeof__(name) *real; \
  if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define SENDS(fd) fails(by_socket(fd, NETLINK_SEND, DATAGRAM_SEND, STREAM_SEND))
#define RECEIVES(fd) fails(by_socket(fd, NETLINK_RECEIVE, DATAGRAM_RECEIVE, STREAM_RECEIVE))

int socket(int domain, int type, int protocol) {
  REAL(socket);
  int class = domain == AF_NETLINK ? NETLINK_SOCKET : domain == AF_UNIX ? -1 : SOCKET;
  return fails(class) ? -1 : real(domain, type, protocol);
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
  REAL(accept4);
  return fails(ACCEPT) ? -1 : real(fd, address, length, flags);
}

int connect(int fd, const struct sockaddr *address, socklen_t length) {
  REAL(connect);
  return fails(by_socket(fd, -1, CONNECT, CONNECT)) ? -1 : real(fd, address, length);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags) {
  REAL(send);
  return SENDS(fd) ? -1 : real(fd, bytes, length, flags);
}

ssize_t sendto(int fd, const void *bytes, size_t length, int flags, const struct sockaddr *to, socklen_t size) {
  REAL(sendto);
  return SENDS(fd) ? -1 : real(fd, bytes, length, flags, to, size);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  REAL(sendmsg);
  return SENDS(fd) ? -1 : real(fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags) {
  REAL(sendmmsg);
  return SENDS(fd) ? -1 : real(fd, messages, count, flags);
}

ssize_t write(int fd, const void *bytes, size_t length) {
  REAL(write);
  return fails(by_socket(fd, NETLINK_SEND, -1, STREAM_SEND)) ? -1 : real(fd, bytes, length);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  REAL(writev);
  return fails(by_socket(fd, NETLINK_SEND, -1, STREAM_SEND)) ? -1 : real(fd, parts, count);
}

ssize_t recv(int fd, void *bytes, size_t length, int flags) {
  REAL(recv);
  return RECEIVES(fd) ? -1 : real(fd, bytes, length, flags);
}

ssize_t recvfrom(int fd, void *bytes, size_t length, int flags, struct sockaddr *from, socklen_t *size) {
  REAL(recvfrom);
  return RECEIVES(fd) ? -1 : real(fd, bytes, length, flags, from, size);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
  REAL(recvmsg);
  return RECEIVES(fd) ? -1 : real(fd, message, flags);
}

int recvmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags, struct timespec *limit) {
  REAL(recvmmsg);
  return RECEIVES(fd) ? -1 : real(fd, messages, count, flags, limit);
}

int epoll_ctl(int fd, int what, int of, struct epoll_event *event) {
  REAL(epoll_ctl);
  return what == EPOLL_CTL_ADD && fails(EPOLL_ADD) ? -1 : real(fd, what, of, event);
}

int pipe2(int ends[2], int flags) {
  REAL(pipe2);
  return fails(PIPE) ? -1 : real(ends, flags);
}

int open64(const char *path, int flags, ...) {
  REAL(open64);
  va_list more;
  va_start(more, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
  va_end(more);
  return fails(FILE_OPEN) ? -1 : real(path, flags, mode);
}
