/* A program of many small operations: the words of its command line are operations with their arguments, with `,` between. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <netinet/in.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef VERSION
#define VERSION 1
#endif

typedef int operation(char **words, int count);
struct named { const char *name; operation *call; };
extern const struct named file_operations[], process_operations[], signal_operations[], socket_operations[], code_operations[];
extern char **environ;
int say(const char *what, long result);
