#include "tool.h"

static int show(int file)
{
    char text[4096];
    ssize_t length = read(file, text, sizeof text);
    if (length < 0)
        return say("read", length);
    printf("%zd bytes: %.*s\n", length, (int)length, text);
    return 0;
}

static int op_read(char **words, int count)
{
    (void)count;
    int file = open(words[0], O_RDONLY);
    if (file < 0)
        return say("open", file);
    int result = show(file);
    close(file);
    return result;
}

static int op_fopen(char **words, int count)
{
    (void)count;
    char line[256];
    FILE *file = fopen(words[0], "r");
    if (!file)
        return say("fopen", -1);
    while (fgets(line, sizeof line, file))
        fputs(line, stdout);
    return fclose(file) != 0;
}

static int op_openat(char **words, int count)
{
    (void)count;
    int folder = open(words[0], O_RDONLY | O_DIRECTORY);
    if (folder < 0)
        return say("folder", folder);
    int file = openat(folder, words[1], O_RDONLY);
    int result = file < 0 ? say("openat", file) : show(file);
    close(file);
    close(folder);
    return result;
}

static int write_with(const char *path, const char *text, int flags)
{
    int file = open(path, flags, 0644);
    if (file < 0)
        return say("open to write", file);
    int result = say("write", write(file, text, strlen(text)));
    close(file);
    return result;
}

static int op_write(char **words, int count)
{
    (void)count;
    return write_with(words[0], words[1], O_WRONLY | O_CREAT | O_TRUNC);
}

static int op_append(char **words, int count)
{
    (void)count;
    return write_with(words[0], words[1], O_WRONLY | O_CREAT | O_APPEND);
}

static int op_overwrite(char **words, int count)
{
    (void)count;
    return write_with(words[0], words[1], O_WRONLY | O_CREAT);
}

static int op_exclusive(char **words, int count)
{
    (void)count;
    return write_with(words[0], words[1], O_WRONLY | O_CREAT | O_EXCL);
}

static int op_stat(char **words, int count)
{
    (void)count;
    struct stat found;
    if (stat(words[0], &found))
        return say("stat", -1);
    int is_file = S_ISREG(found.st_mode);
    printf("kind %o, size %ld, executable %d\n", found.st_mode & S_IFMT, is_file ? (long)found.st_size : 0, is_file && found.st_mode & 0111);
    return 0;
}

static int op_access(char **words, int count)
{
    (void)count;
    say("is there", access(words[0], F_OK));
    return say("may be executed", access(words[0], X_OK));
}

static int op_raw_open(char **words, int count)
{
    (void)count;
    int file = syscall(SYS_openat, AT_FDCWD, words[0], O_RDONLY, 0);
    int result = file < 0 ? say("raw open", file) : show(file);
    close(file);
    return result;
}

static int by_name(const struct dirent **one, const struct dirent **other)
{
    return strcmp((*one)->d_name, (*other)->d_name);
}

static int op_list(char **words, int count)
{
    (void)count;
    struct dirent **entries;
    int found = scandir(words[0], &entries, 0, by_name);
    if (found < 0)
        return say("list", found);
    for (int i = 0; i < found; i++) {
        printf("%s %d\n", entries[i]->d_name, entries[i]->d_type);
        free(entries[i]);
    }
    free(entries);
    return 0;
}

static int op_readlink(char **words, int count)
{
    (void)count;
    char target[256] = "";
    ssize_t length = readlink(words[0], target, sizeof target - 1);
    return length < 0 ? say("readlink", length) : printf("leads to %s\n", target) < 0;
}

static int op_realpath(char **words, int count)
{
    (void)count;
    char *path = realpath(words[0], 0);
    if (!path)
        return say("realpath", -1);
    printf("ends in %s\n", strrchr(path, '/') ? strrchr(path, '/') : path);
    free(path);
    return 0;
}

static int op_mmap(char **words, int count)
{
    (void)count;
    int file = open(words[0], O_RDONLY);
    struct stat found;
    if (file < 0 || fstat(file, &found) || found.st_size == 0) {
        close(file);
        return say("nothing to map", -1) && 0;
    }
    char *text = mmap(0, found.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (text == MAP_FAILED)
        return say("mmap", -1);
    unsigned sum = 0;
    for (long i = 0; i < found.st_size; i++)
        sum = sum * 31 + (unsigned char)text[i];
    munmap(text, found.st_size);
    printf("sum %u\n", sum);
    return 0;
}

static int op_mmap_shared(char **words, int count)
{
    (void)count;
    int file = open(words[0], O_RDWR | O_CREAT, 0644);
    if (file < 0 || ftruncate(file, 16))
        return say("shared map", -1);
    char *text = mmap(0, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (text == MAP_FAILED)
        return say("mmap", -1);
    memcpy(text, words[1], strlen(words[1]) < 16 ? strlen(words[1]) : 16);
    return say("munmap", munmap(text, 16));
}

static int op_rename(char **words, int count)
{
    (void)count;
    return say("rename", rename(words[0], words[1]));
}

static int op_unlink(char **words, int count)
{
    (void)count;
    return say("unlink", unlink(words[0]));
}

static int op_link(char **words, int count)
{
    (void)count;
    return say("link", link(words[0], words[1]));
}

static int op_symlink(char **words, int count)
{
    (void)count;
    return say("symlink", symlink(words[0], words[1]));
}

static int op_mkdir(char **words, int count)
{
    (void)count;
    return say("mkdir", mkdir(words[0], 0755));
}

static int op_rmdir(char **words, int count)
{
    (void)count;
    return say("rmdir", rmdir(words[0]));
}

static int op_chmod(char **words, int count)
{
    (void)count;
    return say("chmod", chmod(words[0], strtol(words[1], 0, 8)));
}

static int op_truncate(char **words, int count)
{
    (void)count;
    return say("truncate", truncate(words[0], atol(words[1])));
}

static int op_setxattr(char **words, int count)
{
    (void)count;
    return say("setxattr", setxattr(words[0], "user.lab", words[1], strlen(words[1]), 0));
}

static int op_getxattr(char **words, int count)
{
    (void)count;
    char value[64] = "";
    ssize_t length = getxattr(words[0], "user.lab", value, sizeof value - 1);
    return length < 0 ? say("getxattr", length) : printf("attribute %s\n", value) < 0;
}

static int op_utimes(char **words, int count)
{
    (void)count;
    struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    return say("utimensat", utimensat(AT_FDCWD, words[0], times, 0));
}

static int op_tmpfile(char **words, int count)
{
    (void)count;
    FILE *file = tmpfile();
    if (!file)
        return say("tmpfile", -1);
    fputs(words[0], file);
    rewind(file);
    char text[64] = "";
    char *read = fgets(text, sizeof text, file);
    printf("temporary %s\n", read ? read : "nothing");
    return fclose(file) != 0;
}

static int op_mkdtemp(char **words, int count)
{
    char path[512];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/labXXXXXX", folder ? folder : "/tmp");
    if (!mkdtemp(path))
        return say("mkdtemp", -1);
    printf("%s\n", count > 0 ? words[0] : "");
    return say("rmdir", rmdir(path));
}

static int op_lock(char **words, int count)
{
    (void)count;
    int file = open(words[0], O_RDWR | O_CREAT, 0644);
    if (file < 0)
        return say("lock file", file);
    int result = say("flock", flock(file, LOCK_EX));
    struct flock part = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    result |= say("fcntl", fcntl(file, F_SETLK, &part));
    close(file);
    return result;
}

static int op_getcwd(char **words, int count)
{
    (void)words, (void)count;
    char path[1024];
    if (!getcwd(path, sizeof path))
        return say("getcwd", -1);
    char *last = strrchr(path, '/');
    printf("in %s\n", last ? last : path);
    return 0;
}

const struct named file_operations[] = {
    {"read", op_read}, {"fopen", op_fopen}, {"openat", op_openat}, {"write", op_write}, {"append", op_append},
    {"overwrite", op_overwrite}, {"exclusive", op_exclusive}, {"stat", op_stat}, {"access", op_access}, {"raw-open", op_raw_open},
    {"list", op_list}, {"readlink", op_readlink}, {"realpath", op_realpath}, {"mmap", op_mmap}, {"mmap-shared", op_mmap_shared},
    {"rename", op_rename}, {"unlink", op_unlink}, {"link", op_link}, {"symlink", op_symlink}, {"mkdir", op_mkdir},
    {"rmdir", op_rmdir}, {"chmod", op_chmod}, {"truncate", op_truncate}, {"setxattr", op_setxattr}, {"getxattr", op_getxattr},
    {"utimes", op_utimes}, {"tmpfile", op_tmpfile}, {"mkdtemp", op_mkdtemp}, {"lock", op_lock}, {"getcwd", op_getcwd}, {0, 0}};
