#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Takes system calls away from a program: shim.py ERRNO NAME[,NAME...] -- CMD [ARG...]

A seccomp filter makes each named call fail with ERRNO; everything else is as it
was. It stands for kernels without the call, for containers whose filter refuses
it, and for security modules. Only x86-64 and arm64 numbers are known.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NS_FLAGS = 0x7E020000
X86 = {"mount": 165, "umount2": 166, "pivot_root": 155, "unshare": 272, "capset": 126,
       "sethostname": 170, "seccomp": 317, "clone-ns": 56, "setns": 308, "renameat2": 316,
       "fsync": 74, "fdatasync": 75, "syncfs": 306, "socket-netfilter": 41}
ARM = {"mount": 40, "umount2": 39, "pivot_root": 41, "unshare": 97, "capset": 91,
       "sethostname": 161, "seccomp": 277, "clone-ns": 220, "setns": 268, "renameat2": 276,
       "fsync": 82, "fdatasync": 83, "syncfs": 267, "socket-netfilter": 198}
EVERYWHERE = {"pidfd_send_signal": 424, "open_tree": 428, "move_mount": 429, "fsopen": 430,
              "fsconfig": 431, "fsmount": 432, "pidfd_open": 434, "clone3": 435,
              "close_range": 436, "openat2": 437, "mount_setattr": 442,
              "landlock_create_ruleset": 444, "landlock_add_rule": 445,
              "landlock_restrict_self": 446}
NUMBERS = {**(X86 if platform.machine() == "x86_64" else ARM), **EVERYWHERE}


def program(names, error):
    """BPF: each number compared in turn; clone only where its flags ask for a namespace,
    socket only where it speaks to the packet filter."""
    code = [(0x20, 0, 0, 0)]  # the number
    refuse = (0x06, 0, 0, ERRNO | error)
    for name in names:
        if name == "clone-ns":
            code += [(0x15, 0, 4, NUMBERS[name]), (0x20, 0, 0, 16), (0x45, 0, 1, NS_FLAGS), refuse,
                     (0x06, 0, 0, ALLOW)]
        elif name == "socket-netfilter":  # AF_NETLINK, NETLINK_NETFILTER
            code += [(0x15, 0, 6, NUMBERS[name]), (0x20, 0, 0, 16), (0x15, 0, 3, 16), (0x20, 0, 0, 32),
                     (0x15, 0, 1, 12), refuse, (0x06, 0, 0, ALLOW)]
        else:
            code += [(0x15, 0, 1, NUMBERS[name]), refuse]
    return code + [(0x06, 0, 0, ALLOW)]


def install(names, error):
    libc = ctypes.CDLL(None, use_errno=True)
    raw = b"".join(struct.pack("=HBBI", *i) for i in program(names, error))
    buffer = ctypes.create_string_buffer(raw, len(raw))
    fprog = struct.pack("=HxxxxxxQ", len(raw) // 8, ctypes.addressof(buffer))
    # 38: no_new_privs, without which only root may; 22, 2: PR_SET_SECCOMP, a filter.
    if os.geteuid() != 0 and libc.prctl(38, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if libc.prctl(22, 2, fprog, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def without_sync():
    """From here on nothing that a test starts waits for the disk: what a kill leaves is the same.
    Only as root, since others would lose set-id programs with it."""
    if os.geteuid() == 0 and platform.machine() in ("x86_64", "aarch64"):
        install(["fsync", "fdatasync", "syncfs"], 0)


def main(argv):
    at = argv.index("--")
    install(argv[1].split(","), getattr(errno, argv[0]))
    os.execvp(argv[at + 1], argv[at + 1:])


if __name__ == "__main__":
    main(sys.argv[1:])
