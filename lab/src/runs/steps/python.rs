//! Steps in Python. Each is the body of a function; what it raises is printed. See `super` for what
//! stands in braces.

use super::Feature::{self, *};

pub const ALL: &[(Feature, &str)] = &[
    (Files, "print(open('{file}').read())"),
    (Files, "print(os.path.exists('{absent}'), os.path.isfile('{file}'))"),
    (Files, "print(os.path.getsize('{file}'))"),
    (Files, "open('{out}', 'w').write('{word}')\nprint(open('{out}').read())"),
    (Files, "open('{out}', 'a').write('{word}')\nprint(open('{out}').read())"),
    (
        Files,
        "f = open('{out}', 'w+b')\nf.write(b'0123456789')\nf.truncate({n})\nf.seek(0)\nprint(f.read())",
    ),
    (Files, "os.rename('{out}', '{new}')"),
    (Files, "os.replace('{out}', '{file}')"),
    (Files, "os.unlink('{file}')"),
    (Files, "shutil.copy('{file}', '{out}')\nprint(open('{out}').read())"),
    (Files, "m = mmap.mmap(os.open('{file}', os.O_RDONLY), 0, prot=mmap.PROT_READ)\nprint(m[:20])"),
    (
        Files,
        "f = os.open('{out}', os.O_RDWR | os.O_CREAT)\nos.ftruncate(f, 32)\nm = mmap.mmap(f, 32)\nm[:4] = b'abcd'\nm.close()\nprint(os.pread(f, 8, 0))",
    ),
    (Files, "os.open('{out}', os.O_WRONLY | os.O_CREAT | os.O_EXCL)"),
    (Files, "print(os.access('{file}', os.X_OK), os.access('{absent}', os.F_OK))"),
    (Files, "print(hash_of(open('{file}', 'rb').read()))"),
    (Folders, "print(sorted(os.listdir('{dir}')))"),
    (Folders, "print(sorted((e.name, e.is_dir()) for e in os.scandir('{dir}')))"),
    (
        Folders,
        "for root, folders, files in os.walk('{dir}'):\n    folders.sort()\n    print(root, sorted(files))",
    ),
    (Folders, "os.makedirs('{new}/a/b')\nprint(sorted(os.listdir('{new}')))"),
    (Folders, "shutil.rmtree('{new}', ignore_errors=True)\nprint(os.path.exists('{new}'))"),
    (Folders, "shutil.copytree('{dir}', '{new}')\nprint(sorted(os.listdir('{new}')))"),
    (
        Folders,
        "f = os.open('{dir}', os.O_RDONLY)\nprint(sorted(os.listdir(f)), os.path.basename(os.getcwd()))",
    ),
    (
        Folders,
        "f = os.open('{dir}', os.O_RDONLY)\nos.mkdir('{word}', dir_fd=f)\nos.rmdir('{word}', dir_fd=f)",
    ),
    (Links, "print(os.readlink('{link}'))"),
    (
        Links,
        "print(os.path.islink('{link}'), os.path.exists('{link}'), os.path.basename(os.path.realpath('{link}')))",
    ),
    (Links, "os.symlink('{file}', '{new}')\nprint(open('{new}').read())"),
    (Links, "os.link('{file}', '{new}')\nprint(os.stat('{new}').st_size)"),
    (Attributes, "print(os.getxattr('{file}', 'user.lab'))"),
    (Attributes, "print(sorted(os.listxattr('{file}')))"),
    (Attributes, "open('{out}', 'w').close()\nos.setxattr('{out}', 'user.lab', b'{word}')"),
    (Attributes, "open('{out}', 'w').write('{word}')\nos.utime('{out}', (1000000000, 1000000000))"),
    (Attributes, "open('{out}', 'w').write('{word}')\nos.chmod('{out}', 0o750)"),
    (
        Attributes,
        "print(stat.S_IFMT(os.stat('{file}').st_mode), bool(os.stat('{file}').st_mode & 0o100))",
    ),
    (
        Descriptors,
        "f = os.open('{file}', os.O_RDONLY)\ng = os.dup(f)\nos.close(f)\nprint(os.read(g, 9))\nos.close(g)",
    ),
    (
        Descriptors,
        "f = os.open('{file}', os.O_RDONLY)\nprint(open('/dev/fd/%d' % f).read())\nos.close(f)",
    ),
    (
        Descriptors,
        "f = os.open('{file}', os.O_RDONLY)\nos.set_inheritable(f, True)\nprint(subprocess.run(['cat', '/dev/fd/%d' % f], pass_fds=[f], stdout=-1).stdout)\nos.close(f)",
    ),
    (Descriptors, "print(os.read(7, 20))"),
    (
        Descriptors,
        "f = os.memfd_create('x')\nos.write(f, b'{word}')\nprint(os.pread(f, 9, 0))\nos.close(f)",
    ),
    (Input, "print(sys.stdin.read())"),
    (
        Input,
        "print(os.isatty(0), os.fstat(0).st_size if stat.S_ISREG(os.fstat(0).st_mode) else '-')",
    ),
    (Input, "print(os.read(fcntl.fcntl(0, fcntl.F_DUPFD, 30), 5))"),
    (Processes, "print(subprocess.run(['{exe}', '{word}'], stdout=-1, stderr=-1))"),
    (Processes, "print(subprocess.run('cat {file}; exit {n}', shell=True, stdout=-1, stderr=-1))"),
    (Processes, "print(subprocess.check_output(['cat'], stdin=open('{file}')))"),
    (
        Processes,
        "pid = os.fork()\nif pid == 0:\n    os._exit(7 if os.path.exists('{file}') else 8)\nprint(os.waitpid(pid, 0)[1])",
    ),
    (
        Processes,
        "pid = os.posix_spawn('{exe}', ['{exe}', 'x'], os.environ)\nprint(os.waitpid(pid, 0)[1])",
    ),
    (Processes, "p = subprocess.Popen(['sleep', '100'])\np.terminate()\nprint(p.wait())"),
    (Processes, "print(shutil.which('prog', path='bin'), shutil.which('cat') is not None)"),
    (
        Processes,
        "t = [threading.Thread(target=lambda i=i: open('{out}.%d' % i, 'w').write('{word}')) for i in range(3)]\nfor x in t: x.start()\nfor x in t: x.join()\nprint(sorted(os.listdir('out')))",
    ),
    (
        Signals,
        "signal.signal(signal.SIGCHLD, lambda *a: None)\nn = 0\nfor i in range(8):\n    p = os.fork()\n    if p == 0: os._exit(0)\n    n += not os.path.exists('{keep}')\n    os.waitpid(p, 0)\nsignal.signal(signal.SIGCHLD, signal.SIG_DFL)\nprint('missing', n)",
    ),
    (
        Signals,
        "signal.signal(signal.SIGALRM, lambda *a: None)\nsignal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)\nn = sum(not os.path.exists('{keep}') for i in range(150))\nsignal.setitimer(signal.ITIMER_REAL, 0)\nprint('missing', n)",
    ),
    (
        Signals,
        "signal.signal(signal.SIGALRM, lambda *a: None)\nsignal.siginterrupt(signal.SIGALRM, False)\nsignal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)\nn = sum(not os.path.exists('{keep}') for i in range(150))\nsignal.setitimer(signal.ITIMER_REAL, 0)\nprint('missing', n)",
    ),
    (
        Signals,
        "got = []\nsignal.signal(signal.SIGUSR1, lambda *a: got.append(a[0]))\nos.kill(os.getpid(), signal.SIGUSR1)\nprint(got)",
    ),
    (
        Signals,
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])\nsignal.pthread_kill(threading.get_ident(), signal.SIGUSR2)\nprint(signal.sigwait([signal.SIGUSR2]))",
    ),
    (Signals, "print(subprocess.run(['sh', '-c', 'kill -ABRT $$']).returncode)"),
    (
        Pipes,
        "r, w = os.pipe()\nos.write(w, b'{word}')\nprint(os.read(r, 20))\nos.close(r)\nos.close(w)",
    ),
    (
        Pipes,
        "os.mkfifo('{new}')\np = subprocess.Popen(['sh', '-c', 'echo {word} >{new}'])\nprint(open('{new}').read())\np.wait()\nos.unlink('{new}')",
    ),
    (
        Sockets,
        "s = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\nc = socket.create_connection(s.getsockname())\na = s.accept()[0]\nc.send(b'{word}')\nprint(a.recv(20))\nfor x in (a, c, s): x.close()",
    ),
    (
        Sockets,
        "s = socket.socket(socket.AF_UNIX)\ns.bind('{new}')\ns.listen()\nc = socket.socket(socket.AF_UNIX)\nc.connect('{new}')\nprint(os.path.exists('{new}'))\nfor x in (c, s): x.close()\nos.unlink('{new}')",
    ),
    (
        Sockets,
        "s = socket.socket(socket.AF_UNIX)\ns.bind('\\0lab-{port}')\ns.close()\nprint('bound')",
    ),
    (
        Sockets,
        "s = socket.socket()\ns.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\nprint(s.connect_ex(('127.0.0.1', {port})))\ns.close()",
    ),
    (
        Sockets,
        "s = socket.socket()\ns.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\ns.bind(('127.0.0.1', {port}))\ns.close()\nprint('bound')",
    ),
    (
        Sockets,
        "a, b = socket.socketpair()\nf = open('{file}')\nsocket.send_fds(a, [b'x'], [f.fileno()])\ng = socket.recv_fds(b, 1, 1)[1][0]\nprint(os.read(g, 20))",
    ),
    (
        Terminals,
        "a, b = os.openpty()\nprint(os.isatty(b))\nos.write(b, b'{word}')\nprint(os.read(a, 20))\nos.close(a)\nos.close(b)",
    ),
    (Terminals, "print(os.path.exists('/dev/tty'), os.isatty(0), os.isatty(2))"),
    (Environment, "print(os.environ.get('{var}'))"),
    (Environment, "print(sorted(k for k in os.environ if k.startswith('COL')), sys.argv[1:])"),
    (Environment, "print(subprocess.run(['env'], env={'A': '{word}'}, stdout=-1).stdout)"),
    (
        Environment,
        "d = tempfile.mkdtemp()\nopen(d + '/x', 'w').write('{word}')\nprint(os.listdir(d))\nshutil.rmtree(d)",
    ),
    (
        Environment,
        "f = tempfile.NamedTemporaryFile()\nf.write(b'{word}')\nf.flush()\nprint(os.path.getsize(f.name))\nf.close()",
    ),
    (
        Sanitizers,
        "print(subprocess.run(['{sanitized}', 'read', '{file}', ',', 'memory', 'x'], stdout=-1, stderr=-1).stdout)",
    ),
    (
        Libcs,
        "print(subprocess.run(['{libc}', 'read', '{file}', ',', 'list', '{dir}'], stdout=-1).stdout)",
    ),
    (
        Privileges,
        "pid = os.fork()\nif pid == 0:\n    os.setgroups([])\n    os.setgid(65534)\n    os.setuid(65534)\n    os._exit(3 if os.access('{file}', os.R_OK) else 4)\nprint(os.waitpid(pid, 0)[1])",
    ),
    (Privileges, "print(os.getuid(), os.geteuid())"),
    (
        Sandboxes,
        "pid = os.fork()\nif pid == 0:\n    os.chroot('{dir}')\n    os._exit(len(os.listdir('/')))\nprint(os.waitpid(pid, 0)[1])",
    ),
    (
        Locks,
        "f = open('{out}.lock', 'w')\nfcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\nprint('locked')",
    ),
    (
        Locks,
        "f = open('{out}.lock', 'w')\nfcntl.lockf(f, fcntl.LOCK_EX)\nf.write('{word}')\nprint('locked')",
    ),
    (Limits, "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"),
    (
        Limits,
        "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nprint(subprocess.run(['{exe}'], stdout=-1).stdout)",
    ),
    (Traced, "print(subprocess.run(['{traced}', 'call', '{n}', ',', 'sort'], stdout=-1).stdout)"),
    (Traced, "print(subprocess.run(['bin/user'], stdout=-1).stdout)"),
];

/// What comes before the steps.
pub const HEAD: &str = "\
import errno, fcntl, mmap, os, resource, shutil, signal, socket, stat, subprocess, sys, tempfile, threading, zlib
def hash_of(b): return zlib.crc32(b)
def attempt(f):
    try:
        f()
    except OSError as e:
        print('error', errno.errorcode.get(e.errno, e.errno))
    except Exception as e:
        print(type(e).__name__)
    sys.stdout.flush()
";
