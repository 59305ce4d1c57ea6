# SPDX-License-Identifier: Apache-2.0
"""Servers out of Debian packages that should not be installed, since an installed one is started
or asks for a user of its own: they are fetched and unpacked, with what they need."""

import glob
import os
import subprocess

APT = ["apt-get", "-qq", "-y", "-o", "Debug::NoLocking=1", "-o", "APT::Install-Recommends=0",
       "-o", "APT::Sandbox::User="]


def unpack(top, *packages):
    """Below `top`; returns variables of the environment with which their programs work."""
    archives = f"{top}/archives"
    os.makedirs(f"{archives}/partial", exist_ok=True)
    subprocess.run([*APT, "-o", f"Dir::Cache={top}", "--download-only", "--reinstall", "install",
                    *packages], check=True, stdin=subprocess.DEVNULL, capture_output=True,
                   text=True)
    for deb in glob.glob(f"{archives}/*.deb"):
        subprocess.run(["dpkg-deb", "-x", deb, top], check=True)
        os.unlink(deb)
    programs = [*glob.glob(f"{top}/usr/lib/postgresql/*/bin"), f"{top}/usr/bin"]
    return {"PATH": ":".join([*programs, os.environ["PATH"]]),
            "PYTHONPATH": f"{top}/usr/lib/python3/dist-packages",
            "LD_LIBRARY_PATH": ":".join(glob.glob(f"{top}/usr/lib/*-linux-gnu"))}
