#include "tool.h"

static int exchange(int server, const struct sockaddr *address, socklen_t length, const char *text)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int client = socket(address->sa_family, SOCK_STREAM, 0);
        if (connect(client, address, length))
            _exit(5);
        _exit(write(client, text, strlen(text)) < 0);
    }
    char got[64] = "";
    int status, connection = accept(server, 0, 0);
    ssize_t read_length = connection < 0 ? -1 : read(connection, got, sizeof got - 1);
    close(connection);
    waitpid(child, &status, 0);
    printf("received %zd %s, client %d\n", read_length, got, WEXITSTATUS(status));
    return 0;
}

static int op_unix(char **words, int count)
{
    (void)count;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, words[0], sizeof address.sun_path - 1);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(server, (void *)&address, sizeof address) || listen(server, 1)) {
        int problem = say("bind", -1);
        close(server);
        return problem;
    }
    int result = exchange(server, (void *)&address, sizeof address, words[1]);
    close(server);
    unlink(words[0]);
    return result;
}

static int op_tcp(char **words, int count)
{
    (void)count;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server, (void *)&address, sizeof address) || listen(server, 1) || getsockname(server, (void *)&address, &length))
        return say("tcp", -1);
    int result = exchange(server, (void *)&address, sizeof address, words[0]);
    close(server);
    return result;
}

static int op_bind(char **words, int count)
{
    (void)count;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(words[0])), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int server = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    int result = bind(server, (void *)&address, sizeof address);
    say("bind to the port", result);
    close(server);
    return 0;
}

static int op_connect(char **words, int count)
{
    (void)count;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(words[0])), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int client = socket(AF_INET, SOCK_STREAM, 0);
    int result = connect(client, (void *)&address, sizeof address);
    say("connect to the port", result);
    close(client);
    return 0;
}

static int op_socketpair(char **words, int count)
{
    (void)count;
    int ends[2];
    char text[64] = "";
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return say("socketpair", -1);
    ssize_t length = write(ends[0], words[0], strlen(words[0]));
    length = read(ends[1], text, sizeof text - 1);
    close(ends[0]);
    close(ends[1]);
    printf("pair %zd %s\n", length, text);
    return 0;
}

/* Passes the descriptor of a file over a socket, and reads it there. */
static int op_pass(char **words, int count)
{
    (void)count;
    int ends[2], file = open(words[0], O_RDONLY);
    if (file < 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, ends))
        return say("pass", -1);
    char byte = 'x', room[CMSG_SPACE(sizeof file)] = {0}, text[64] = "";
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(header), &file, sizeof file);
    say("sendmsg", sendmsg(ends[0], &message, 0));
    close(file);
    say("recvmsg", recvmsg(ends[1], &message, 0));
    memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
    ssize_t length = read(file, text, sizeof text - 1);
    printf("passed %zd %s\n", length, text);
    close(file);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

const struct named socket_operations[] = {
    {"unix", op_unix}, {"tcp", op_tcp}, {"bind", op_bind}, {"connect", op_connect}, {"socketpair", op_socketpair}, {"pass", op_pass}, {0, 0}};
