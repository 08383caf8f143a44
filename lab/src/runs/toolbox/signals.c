#include "tool.h"

static volatile sig_atomic_t arrived;

static void count_it(int number)
{
    (void)number;
    arrived++;
}

static void handle(int number, int flags)
{
    struct sigaction action = {.sa_handler = count_it, .sa_flags = flags};
    sigaction(number, &action, 0);
}

static void every(long microseconds)
{
    struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &timer, 0);
}

/* Looks for a file many times while a timer interrupts; plainly, none of these calls can be interrupted. */
static int look_under_timer(const char *path, int flags)
{
    int interrupted = 0, found = 0;
    struct stat status;
    handle(SIGALRM, flags);
    every(300);
    for (int i = 0; i < 60; i++) {
        errno = 0;
        found += stat(path, &status) == 0;
        interrupted += errno == EINTR;
        int file = open(path, O_RDONLY);
        interrupted += file < 0 && errno == EINTR;
        if (file >= 0)
            close(file);
        interrupted += access(path, F_OK) != 0 && errno == EINTR;
    }
    every(0);
    signal(SIGALRM, SIG_DFL);
    printf("found %d, interrupted %d\n", found, interrupted);
    return 0;
}

static int op_timer(char **words, int count)
{
    (void)count;
    return look_under_timer(words[0], 0);
}

static int op_timer_restart(char **words, int count)
{
    (void)count;
    return look_under_timer(words[0], SA_RESTART);
}

/* Changes under a timer: what is interrupted must not have been done, and what is done must not be repeated. */
static int op_timer_write(char **words, int count)
{
    (void)count;
    int failed = 0;
    handle(SIGALRM, 0);
    every(400);
    for (int i = 0; i < 20; i++) {
        int file = open(words[0], O_WRONLY | O_CREAT | O_APPEND, 0644);
        failed += file < 0 || write(file, ".", 1) != 1;
        close(file);
    }
    every(0);
    signal(SIGALRM, SIG_DFL);
    printf("failed writes %d\n", failed);
    return 0;
}

static int op_children(char **words, int count)
{
    (void)count;
    int missing = 0, left = 6;
    handle(SIGCHLD, 0);
    fflush(stdout);
    for (int i = 0; i < 6; i++) {
        if (fork() == 0)
            _exit(0);
        missing += access(words[0], F_OK) != 0;
        struct stat status;
        missing += stat(words[0], &status) != 0;
    }
    while (left > 0) {
        pid_t child = waitpid(-1, 0, 0);
        if (child > 0)
            left--;
        else if (errno != EINTR)
            break;
    }
    signal(SIGCHLD, SIG_DFL);
    printf("missing %d, children left %d\n", missing, left);
    return 0;
}

static int op_raise(char **words, int count)
{
    (void)count;
    arrived = 0;
    handle(atoi(words[0]), SA_RESTART);
    raise(atoi(words[0]));
    kill(getpid(), atoi(words[0]));
    signal(atoi(words[0]), SIG_DFL);
    printf("arrived %d\n", (int)arrived);
    return 0;
}

static int op_trap(char **words, int count)
{
    (void)words, (void)count;
    arrived = 0;
    handle(SIGTRAP, 0);
    raise(SIGTRAP);
#ifdef __x86_64__
    __asm__ volatile("int3");
#endif
    signal(SIGTRAP, SIG_IGN);
    kill(getpid(), SIGTRAP);
    signal(SIGTRAP, SIG_DFL);
    printf("trapped %d\n", (int)arrived);
    return 0;
}

static int op_sigwait(char **words, int count)
{
    (void)count;
    int number = 0;
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, atoi(words[0]));
    sigprocmask(SIG_BLOCK, &set, &before);
    kill(getpid(), atoi(words[0]));
    sigwait(&set, &number);
    sigprocmask(SIG_SETMASK, &before, 0);
    printf("waited for %d\n", number);
    return 0;
}

static int op_block_all(char **words, int count)
{
    (void)count;
    sigset_t all, before;
    struct stat status;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    int found = stat(words[0], &status);
    FILE *file = fopen(words[0], "r");
    printf("blocked: found %d %d\n", found, file != 0);
    if (file)
        fclose(file);
    sigprocmask(SIG_SETMASK, &before, 0);
    return 0;
}

static int op_alternate_stack(char **words, int count)
{
    (void)words, (void)count;
    static char room[8192];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room}, before;
    arrived = 0;
    sigaltstack(&stack, &before);
    handle(SIGUSR1, SA_ONSTACK);
    raise(SIGUSR1);
    signal(SIGUSR1, SIG_DFL);
    sigaltstack(&before, 0);
    printf("on another stack %d\n", (int)arrived);
    return 0;
}

static sigjmp_buf back;

static void jump(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

static int op_fault(char **words, int count)
{
    (void)words, (void)count;
    struct sigaction action = {.sa_handler = jump}, before;
    sigaction(SIGSEGV, &action, &before);
    volatile int caught = 0;
    char *page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sigsetjmp(back, 1) == 0)
        *(volatile char *)page = 1;
    else
        caught = 1;
    munmap(page, 4096);
    sigaction(SIGSEGV, &before, 0);
    printf("fault caught %d\n", caught);
    return 0;
}

/* Reading an empty pipe under a timer has to be interrupted exactly if the handler says so. */
static int op_interrupted_read(char **words, int count)
{
    (void)words, (void)count;
    int ends[2];
    char byte;
    if (pipe(ends))
        return say("pipe", -1);
    handle(SIGALRM, 0);
    every(2000);
    ssize_t length = read(ends[0], &byte, 1);
    int why = errno;
    every(0);
    signal(SIGALRM, SIG_DFL);
    close(ends[0]);
    close(ends[1]);
    printf("read %zd, error %d\n", length, length < 0 ? why : 0);
    return 0;
}

static int op_sleep(char **words, int count)
{
    (void)words, (void)count;
    struct timespec time = {0, 2000000};
    return say("nanosleep", nanosleep(&time, 0));
}

static void *look(void *path)
{
    long found = 0;
    struct stat status;
    for (int i = 0; i < 30; i++)
        found += stat(path, &status) == 0;
    return (void *)found;
}

static int op_threads(char **words, int count)
{
    (void)count;
    pthread_t threads[3];
    long found = 0;
    void *one;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], 0, look, words[0]))
            return say("thread", -1);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], &one);
        found += (long)one;
    }
    printf("threads found %ld\n", found);
    return 0;
}

const struct named signal_operations[] = {
    {"timer", op_timer}, {"timer-restart", op_timer_restart}, {"timer-write", op_timer_write}, {"children", op_children},
    {"raise", op_raise}, {"trap", op_trap}, {"sigwait", op_sigwait}, {"block-all", op_block_all}, {"altstack", op_alternate_stack},
    {"fault", op_fault}, {"interrupted-read", op_interrupted_read}, {"sleep", op_sleep}, {"threads", op_threads}, {0, 0}};
