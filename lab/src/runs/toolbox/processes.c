#include "tool.h"

static int ended(const char *what, pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return say(what, -1);
    if (WIFSIGNALED(status))
        printf("%s: signal %d\n", what, WTERMSIG(status));
    else
        printf("%s: %d\n", what, WEXITSTATUS(status));
    return 0;
}

static int op_fork(char **words, int count)
{
    (void)count;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(access(words[0], F_OK) ? 9 : 8);
    return ended("child", child);
}

static int op_fork_write(char **words, int count)
{
    (void)count;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int file = open(words[0], O_WRONLY | O_CREAT | O_TRUNC, 0600);
        _exit(write(file, words[1], strlen(words[1])) < 0);
    }
    return ended("writer", child);
}

static int op_vfork(char **words, int count)
{
    (void)count;
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0) {
        execl(words[0], words[0], "vforked", (char *)0);
        _exit(111);
    }
    return ended("vfork", child);
}

static int op_spawn(char **words, int count)
{
    (void)count;
    fflush(stdout);
    pid_t child;
    char *argv[] = {words[0], "spawned", 0};
    int problem = posix_spawn(&child, words[0], 0, 0, argv, environ);
    if (problem) {
        printf("spawn: error %d\n", problem);
        return 1;
    }
    return ended("spawn", child);
}

static int op_system(char **words, int count)
{
    char command[512] = "";
    for (int i = 0; i < count; i++)
        snprintf(command + strlen(command), sizeof command - strlen(command), "%s ", words[i]);
    fflush(stdout);
    return say("system", system(command));
}

static int op_popen(char **words, int count)
{
    (void)count;
    char line[256], command[256];
    snprintf(command, sizeof command, "cat %s 2>&1", words[0]);
    FILE *pipe = popen(command, "r");
    if (!pipe)
        return say("popen", -1);
    while (fgets(line, sizeof line, pipe))
        fputs(line, stdout);
    return say("pclose", pclose(pipe));
}

static int op_kill(char **words, int count)
{
    (void)words, (void)count;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    kill(child, SIGTERM);
    return ended("killed", child);
}

static int op_empty_environment(char **words, int count)
{
    (void)count;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char *argv[] = {words[0], "bare", 0}, *none[] = {0};
        execve(words[0], argv, none);
        _exit(112);
    }
    return ended("bare", child);
}

static int op_pipe(char **words, int count)
{
    (void)count;
    int ends[2];
    char text[64] = "";
    if (pipe2(ends, O_CLOEXEC))
        return say("pipe", -1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(write(ends[1], words[0], strlen(words[0])) < 0);
    close(ends[1]);
    ssize_t length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    printf("piped %zd %s\n", length, text);
    return ended("piper", child);
}

static int op_fifo(char **words, int count)
{
    (void)count;
    if (mkfifo(words[0], 0600))
        return say("mkfifo", -1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int file = open(words[0], O_WRONLY);
        _exit(write(file, words[1], strlen(words[1])) < 0);
    }
    char text[64] = "";
    int file = open(words[0], O_RDONLY);
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    printf("fifo %zd %s\n", length, text);
    unlink(words[0]);
    return ended("fifo", child);
}

static int op_dup(char **words, int count)
{
    (void)count;
    int file = open(words[0], O_RDONLY), high = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 50);
    if (file < 0)
        return say("dup", file);
    char text[32] = "";
    ssize_t length = read(high, text, 4);
    length += read(file, text + 4, 4);
    printf("dup %d %zd %s\n", high, length, text);
    close(file);
    close(high);
    return 0;
}

static int op_stdin(char **words, int count)
{
    (void)words, (void)count;
    char text[64] = "";
    ssize_t length = read(0, text, sizeof text - 1);
    return length < 0 ? say("stdin", -1) : printf("stdin %zd %s\n", length, text) < 0;
}

static int op_stdin_dup(char **words, int count)
{
    (void)words, (void)count;
    char text[64] = "";
    int other = fcntl(0, F_DUPFD, 20);
    ssize_t length = other < 0 ? -1 : read(other, text, sizeof text - 1);
    close(other);
    return length < 0 ? say("stdin", -1) : printf("stdin by %d: %zd %s\n", other, length, text) < 0;
}

static int op_inherited(char **words, int count)
{
    (void)count;
    char text[64] = "";
    ssize_t length = read(atoi(words[0]), text, sizeof text - 1);
    return length < 0 ? say("inherited", -1) : printf("inherited %zd %s\n", length, text) < 0;
}

static int op_tty(char **words, int count)
{
    (void)words, (void)count;
    printf("terminals %d %d %d, controlling %d\n", isatty(0), isatty(1), isatty(2), open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0);
    return 0;
}

static int op_getenv(char **words, int count)
{
    (void)count;
    char *value = getenv(words[0]);
    printf("%s %s\n", words[0], value ? value : "is not set");
    return 0;
}

static int op_exit(char **words, int count)
{
    (void)count;
    return atoi(words[0]);
}

static int op_abort_child(char **words, int count)
{
    (void)words, (void)count;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        abort();
    }
    return ended("aborted", child);
}

static int op_umask(char **words, int count)
{
    (void)words, (void)count;
    mode_t mask = umask(022);
    umask(mask);
    printf("umask %o\n", mask);
    return 0;
}

const struct named process_operations[] = {
    {"fork", op_fork}, {"fork-write", op_fork_write}, {"vfork", op_vfork}, {"spawn", op_spawn}, {"system", op_system},
    {"popen", op_popen}, {"kill", op_kill}, {"bare", op_empty_environment}, {"pipe", op_pipe}, {"fifo", op_fifo}, {"dup", op_dup},
    {"stdin", op_stdin}, {"stdin-dup", op_stdin_dup}, {"inherited", op_inherited}, {"tty", op_tty}, {"getenv", op_getenv},
    {"exit", op_exit}, {"abort-child", op_abort_child}, {"umask", op_umask}, {0, 0}};
