//! Steps in Perl. Each is a block of its own; what it dies of is printed. See `super` for what
//! stands in braces.

use super::Feature::{self, *};

pub const ALL: &[(Feature, &str)] = &[
    (Files, "open(my $f, '<', '{file}') or die 0 + $!; print <$f>;"),
    (Files, "print -e '{absent}' ? 'there' : 'absent', \"\\n\";"),
    (
        Files,
        "print join(',', map { -f $_ ? 'f' : -d $_ ? 'd' : '-' } '{file}', '{dir}', '{absent}'), \"\\n\";",
    ),
    (Files, "print -s '{file}' || 0, \"\\n\";"),
    (Files, "print -x '{file}' ? 'runs' : 'no', \"\\n\";"),
    (
        Files,
        "open(my $f, '>', '{out}') or die 0 + $!; print $f '{word}'; close $f; print -s '{out}', \"\\n\";",
    ),
    (Files, "open(my $f, '>>', '{out}') or die 0 + $!; print $f '{word}'; close $f;"),
    (Files, "open(my $f, '+<', '{file}') or die 0 + $!; seek $f, 1, 0; print $f 'Z'; close $f;"),
    (Files, "rename '{out}', '{new}' or die 0 + $!;"),
    (Files, "unlink '{out}' or die 0 + $!;"),
    (Files, "truncate '{out}', {n} or die 0 + $!; print -s '{out}', \"\\n\";"),
    (Files, "do './{file}'; print $@ ? 'dies' : 'runs', \"\\n\";"),
    (Folders, "opendir(my $d, '{dir}') or die 0 + $!; print join(' ', sort readdir $d), \"\\n\";"),
    (Folders, "print join(' ', sort glob '{dir}/*'), \"\\n\";"),
    (Folders, "mkdir '{new}' or die 0 + $!; open(my $f, '>', '{new}/y'); print $f '{word}';"),
    (Folders, "rmdir '{new}' or die 0 + $!;"),
    (
        Folders,
        "chdir '{dir}' or die 0 + $!; print join(' ', sort glob '*'), \"\\n\"; chdir $start;",
    ),
    (Links, "print readlink('{link}') || 0 + $!, \"\\n\";"),
    (Links, "symlink '{file}', '{new}' or die 0 + $!; print -s '{new}' || 0, \"\\n\";"),
    (Links, "link '{file}', '{new}' or die 0 + $!;"),
    (Links, "print -l '{link}' ? 'link' : 'other', -e '{link}' ? ' leads' : ' dangles', \"\\n\";"),
    (
        Attributes,
        "open(my $f, '>', '{out}'); close $f; chmod 0711, '{out}'; utime 999999999, 999999999, '{out}';",
    ),
    (Attributes, "printf \"%o\\n\", umask;"),
    (
        Descriptors,
        "open(my $f, '<', '{file}') or die 0 + $!; open(my $g, '<&', $f) or die 0 + $!; print scalar <$g>;",
    ),
    (Descriptors, "open(my $f, '<&=', 7) or die 0 + $!; print scalar <$f> // 'end';"),
    (
        Descriptors,
        "open(my $save, '>&', STDOUT); open(STDOUT, '>', '{out}'); print '{word}'; system 'echo sub'; close STDOUT; open(STDOUT, '>&', $save);",
    ),
    (Input, "my $line = <STDIN>; print defined $line ? \"<$line>\" : 'end', \"\\n\";"),
    (Input, "print -t STDIN ? 'terminal' : 'none', \"\\n\";"),
    (Input, "open(my $f, '<', '/dev/stdin') or die 0 + $!; print <$f>;"),
    (Processes, "print `{exe} {word} 2>&1`, $? >> 8, \"\\n\";"),
    (Processes, "print system('{exe}', 'a') >> 8, \"\\n\";"),
    (
        Processes,
        "my $p = fork; if (!$p) { exit(-e '{file}' ? 5 : 6) } waitpid $p, 0; print $? >> 8, \"\\n\";",
    ),
    (
        Processes,
        "my $p = fork; if (!$p) { sleep 100; exit } kill 'TERM', $p; waitpid $p, 0; print $? & 127, \"\\n\";",
    ),
    (
        Processes,
        "open(my $f, '-|', 'cat', '{file}') or die 0 + $!; print <$f>; close $f; print $? >> 8, \"\\n\";",
    ),
    (
        Processes,
        "for my $i (1 .. 3) { if (!fork) { open(my $f, '>', \"{out}.$i\"); print $f $i; close $f; exit } } 1 while wait > 0; print join(' ', sort glob '{out}.?'), \"\\n\";",
    ),
    (
        Signals,
        "local $SIG{CHLD} = sub {}; my $n = 0; for (1 .. 8) { if (!fork) { exit } $n++ unless -e '{keep}'; } 1 while wait > 0 || $!{EINTR}; print \"missing $n\\n\";",
    ),
    (
        Signals,
        "local $SIG{ALRM} = sub {}; require Time::HiRes; Time::HiRes::ualarm(500, 500); my $n = 0; for (1 .. 150) { $n++ unless -e '{keep}' } Time::HiRes::ualarm(0); print \"missing $n\\n\";",
    ),
    (Signals, "local $SIG{USR1} = sub { print \"got\\n\" }; kill 'USR1', $$;"),
    (Signals, "local $SIG{TRAP} = sub { print \"trap\\n\" }; kill 'TRAP', $$;"),
    (
        Pipes,
        "pipe(my $r, my $w); if (!fork) { print $w '{word}'; exit } close $w; wait; print <$r>, \"\\n\";",
    ),
    (
        Pipes,
        "local $SIG{PIPE} = 'IGNORE'; open(my $f, '|-', 'cat >{out}') or die 0 + $!; print $f '{word}'; close $f; print -s '{out}', \"\\n\";",
    ),
    (
        Sockets,
        "use Socket; socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0); syswrite $a, '{word}'; sysread $b, my $x, 20; print \"$x\\n\";",
    ),
    (
        Sockets,
        "use Socket; socket(my $s, AF_INET, SOCK_STREAM, 0); setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1); print bind($s, sockaddr_in({port}, INADDR_LOOPBACK)) ? 'bound' : 'busy', \"\\n\";",
    ),
    (
        Terminals,
        "print -t STDOUT ? 'terminal' : 'none', -t STDERR ? ' terminal' : ' none', \"\\n\";",
    ),
    (Environment, "print $ENV{'{var}'} // 'unset', \" @ARGV\\n\";"),
    (Environment, "local $ENV{{var}} = '{word}'; print `echo \"\\${var}\"`;"),
    (Sanitizers, "print `{sanitized} read {file} , sort 2>&1`;"),
    (Libcs, "print `{libc} read {file} , stat {file} 2>&1`;"),
    (
        Privileges,
        "my $p = fork; if (!$p) { $) = 65534; $> = 65534; exit(-r '{file}' ? 5 : 6) } waitpid $p, 0; print $? >> 8, \"\\n\";",
    ),
    (
        Locks,
        "use Fcntl ':flock'; open(my $f, '>', '{out}.lock') or die 0 + $!; print flock($f, LOCK_EX) ? 'locked' : 'not', \"\\n\";",
    ),
    (Limits, "print `ulimit -n`;"),
    (Traced, "print `{traced} call {n} , memory {word} 2>&1`;"),
    (Traced, "print `bin/user 2>&1`;"),
];
