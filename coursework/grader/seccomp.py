"""System calls that no hand-in needs, as a filter that bubblewrap lays over the sandbox.

They reach memory that no limit counts, other processes, or large parts of the kernel. Each fails
with "operation not permitted". Source: seccomp(2), and the kernel's tables of system calls.
"""

import platform
import struct

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_… of linux/audit.h
DENIED = {  # name: number on x86_64, on aarch64
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "ptrace": (101, 117),
    "mount": (165, 40),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "perf_event_open": (298, 241),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "memfd_create": (319, 279),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
}
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # BPF_LD…, BPF_JMP…, BPF_RET of bpf(4)
NUMBER, ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050001, 0x80000000  # REFUSE: errno 1
OTHER_NUMBERS = 0x40000000  # x86_64 has a second set of numbers from here


def seccomp_filter(machine=None):
    """Return the filter's program for a machine, by default this one.

    Raises
    ------
    ValueError : for this kind of machine no numbers are known
    """
    machine = machine or platform.machine()
    if machine not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ValueError(f"no system calls are known for {machine}, only for {known}")
    column = list(ARCHITECTURES).index(machine)
    numbers = [row[column] for row in DENIED.values()]
    program = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, ARCHITECTURES[machine]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, len(numbers) + 1, 0, OTHER_NUMBERS),
    ]
    # Each jump leads past the numbers that are left, and past ALLOW, to REFUSE.
    program += [(EQUAL, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]
    program += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("HBBI", *line) for line in program)
