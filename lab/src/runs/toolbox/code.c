/* What is executed: functions of which a test calls some, in two versions; stacks of its own. */
#include "tool.h"

#define FUNCTION(number, text, other) \
    __attribute__((noinline)) static const char *function_##number(void) { return VERSION == 1 ? text : other; }
FUNCTION(0, "zero", "zero")
FUNCTION(1, "one", "ONE")
FUNCTION(2, "two", "TWO")
FUNCTION(3, "three", "three")
FUNCTION(4, "four", "FOUR")
static const char *(*const table[])(void) = {function_0, function_1, function_2, function_3, function_4};

static int op_call(char **words, int count)
{
    (void)count;
    printf("%s\n", table[atoi(words[0]) % 5]());
    return 0;
}

static ucontext_t here, there;
static int steps;

static void coroutine(void)
{
    for (int i = 0; i < 3; i++) {
        steps += strlen(table[i]());
        swapcontext(&there, &here);
    }
}

static int op_coroutine(char **words, int count)
{
    (void)count;
#ifdef __GLIBC__
    size_t size = atol(words[0]);
    char *stack = malloc(size);
    steps = 0;
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = size;
    there.uc_link = &here;
    makecontext(&there, coroutine, 0);
    for (int i = 0; i < 4; i++)
        swapcontext(&here, &there);
    free(stack);
    printf("coroutine %d\n", steps);
#else
    (void)words, (void)coroutine, (void)here, (void)there, (void)steps;
    printf("no coroutines here\n");
#endif
    return 0;
}

static jmp_buf back;

__attribute__((noinline)) static void leave(int value)
{
    longjmp(back, value);
}

static int op_longjmp(char **words, int count)
{
    (void)count;
    int value = setjmp(back);
    if (value == 0)
        leave(1 + atoi(words[0]));
    printf("jumped %d\n", value);
    return 0;
}

static int order(const void *one, const void *other)
{
    return *(const int *)one - *(const int *)other;
}

static int op_sort(char **words, int count)
{
    (void)words, (void)count;
    int numbers[] = {5, 3, 9, 1, 7};
    qsort(numbers, 5, sizeof *numbers, order);
    printf("sorted %d %d %d\n", numbers[0], numbers[2], numbers[4]);
    return 0;
}

static int op_memory(char **words, int count)
{
    (void)count;
    int sum = 0;
    for (int i = 1; i < 200; i++) {
        char *text = malloc(i * 37);
        memset(text, i, i * 37);
        sum += text[i];
        free(text);
    }
    printf("memory %d %s\n", sum, words[0]);
    return 0;
}

const struct named code_operations[] = {
    {"call", op_call}, {"coroutine", op_coroutine}, {"longjmp", op_longjmp}, {"sort", op_sort}, {"memory", op_memory}, {0, 0}};
