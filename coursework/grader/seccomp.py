"""System calls that a hand-in may make, as a filter that the worker lays over itself.

They serve Python, NumPy and PyTorch once these are loaded: memory, files, time, signals.
All others are refused, with them sockets, pipes, threads and programs; a new one of a newer kernel
too. Source of the numbers: Linux, `arch/x86/entry/syscalls/syscall_64.tbl` and, for aarch64,
`include/uapi/asm-generic/unistd.h`; of the filter: seccomp(2), bpf(4).
"""

import platform
import struct

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_… of linux/audit.h
CALLS = {  # what each serves; a name, its number on x86_64 and on aarch64, "-" for none
    "memory": "brk 12 214, madvise 28 233, mmap 9 222, mprotect 10 226, mremap 25 216, "
    "munmap 11 215",
    "files, read": "access 21 -, close 3 57, dup 32 23, dup2 33 -, dup3 292 24, "
    "faccessat 269 48, fstat 5 80, getcwd 79 17, getdents64 217 61, lseek 8 62, "
    "lstat 6 -, newfstatat 262 79, openat 257 56, pread64 17 67, read 0 63, "
    "readlink 89 -, readlinkat 267 78, readv 19 65, stat 4 -, statx 332 291, "
    "write 1 64, writev 20 66",
    "files, changed": "chdir 80 49, chmod 90 -, fchmod 91 52, fchmodat 268 53, fdatasync 75 83, "
    "fsync 74 82, ftruncate 77 46, mkdir 83 -, mkdirat 258 34, msync 26 227, "
    "pwrite64 18 68, rename 82 -, renameat 264 38, renameat2 316 276, rmdir 84 -, "
    "umask 95 166, unlink 87 -, unlinkat 263 35, utimensat 280 88",
    "time": "alarm 37 -, clock_getres 229 114, clock_gettime 228 113, "
    "clock_nanosleep 230 115, getitimer 36 102, getrusage 98 165, "
    "gettimeofday 96 169, nanosleep 35 101, setitimer 38 103, time 201 -, "
    "times 100 153",
    "signals": "kill 62 129, restart_syscall 219 128, rt_sigaction 13 134, "
    "rt_sigprocmask 14 135, rt_sigreturn 15 139, sigaltstack 131 132, "
    "tgkill 234 131",
    "itself": "exit 60 93, exit_group 231 94, getcpu 309 168, getegid 108 177, "
    "geteuid 107 175, getgid 104 176, getpid 39 172, getppid 110 173, "
    "getrandom 318 278, getrlimit 97 163, gettid 186 178, getuid 102 174, "
    "sched_getaffinity 204 123, sched_yield 24 124, uname 63 160",
}
ALLOWED = {
    name: tuple(int(number) if number != "-" else None for number in numbers)
    for calls in CALLS.values()
    for name, *numbers in map(str.split, calls.split(", "))
}
PARTLY = {  # name: numbers, which argument counts, its values
    # Private ones alone: another sandbox could wait on the same page of a library's file.
    "futex": ((202, 98), 1, (128, 129, 131, 132, 133, 137, 138, 393)),
    # Duplicates and flags. Not locks: they are kernel memory that no limit counts.
    "fcntl": ((72, 25), 1, (0, 1, 2, 3, 4, 1030)),
    # What a terminal is asked, and whether a descriptor is inherited.
    "ioctl": ((16, 29), 1, (0x5401, 0x5413, 0x5450, 0x5451)),
    # The own limits, of which the hard ones can only fall.
    "prlimit64": ((302, 261), 0, (0,)),
}
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # BPF_LD…, BPF_JMP…, BPF_RET of bpf(4)
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE, UNKNOWN = 0x00050000 | 1, 0x00050000 | 38  # EPERM, ENOSYS
RECENT = 424  # from here a libc takes ENOSYS for an older kernel, and does without the call


def seccomp_filter(machine=None):
    """Return the filter's program for a machine, by default this one.

    ValueError: for this kind of machine no numbers are known.
    """
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        raise ValueError(f"no system calls are known for {machine}, only for {[*ARCHITECTURES]}")
    column = list(ARCHITECTURES).index(machine)
    program = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
    ]
    for numbers in ALLOWED.values():
        if numbers[column] is not None:
            program += [(EQUAL, 0, 1, numbers[column]), (RETURN, 0, 0, ALLOW)]
    for numbers, argument, values in PARTLY.values():
        program += [(EQUAL, 0, 2 * len(values) + 2, numbers[column])]
        program += [(LOAD, 0, 0, ARGUMENTS + 8 * argument)]  # 32 bits, as the kernel reads these
        program += [line for v in values for line in ((EQUAL, 0, 1, v), (RETURN, 0, 0, ALLOW))]
        program += [(RETURN, 0, 0, REFUSE)]
    program += [(AT_LEAST, 0, 1, RECENT), (RETURN, 0, 0, UNKNOWN), (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("HBBI", *line) for line in program)
