#include "tool.h"

/* Prints what a call gave; errors by their names, which are the same in every C library. */
int say(const char *what, long result)
{
    if (result < 0)
        printf("%s: error %d\n", what, errno);
    else
        printf("%s: %ld\n", what, result);
    return result < 0;
}

static operation *find(const char *name)
{
    const struct named *all[] = {file_operations, process_operations, signal_operations, socket_operations, code_operations};
    for (size_t table = 0; table < sizeof all / sizeof *all; table++)
        for (const struct named *one = all[table]; one->name; one++)
            if (!strcmp(one->name, name))
                return one->call;
    return 0;
}

int main(int argc, char **argv)
{
    int status = 0;
    for (int at = 1; at < argc;) {
        int end = at;
        while (end < argc && strcmp(argv[end], ","))
            end++;
        operation *call = find(argv[at]);
        if (!call) {
            printf("no operation %s\n", argv[at]);
            return 2;
        }
        int result = call(argv + at + 1, end - at - 1);
        if (result > 1)
            status = result;
        fflush(stdout);
        at = end + 1;
    }
    return status;
}
