# SPDX-License-Identifier: Apache-2.0
"""Certificates of a test's own: an authority that is to be believed, one that is not, and
what servers may show. Made with openssl(1); expired ones have a day in the past.
"""

import os
import subprocess


class Pki:
    def __init__(self, top):
        self.top = top
        self.store = f"{top}/store.pem"

    def run(self, *args):
        subprocess.run(["openssl", *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       cwd=self.top)

    def key(self, name):
        self.run("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")

    def authority(self, name):
        self.key(name)
        self.run("req", "-x509", "-new", "-key", f"{name}.key", "-subj", f"/CN={name} authority", "-days", "30",
                 "-out", f"{name}.pem", "-addext", "basicConstraints=critical,CA:TRUE")

    def leaf(self, name, hosts, by="good", days=30):
        """days below 0: it has expired."""
        self.key(name)
        with open(f"{self.top}/{name}.ext", "w", encoding="ascii") as f:
            f.write("subjectAltName=" + ",".join(f"DNS:{x}" for x in hosts) + "\nbasicConstraints=CA:FALSE\n")
        self.run("req", "-new", "-key", f"{name}.key", "-subj", f"/CN={hosts[0]}", "-out", f"{name}.csr")
        if days < 0:
            with open(f"{self.top}/index", "w", encoding="ascii"):
                pass
            with open(f"{self.top}/ca.cnf", "w", encoding="ascii") as f:
                f.write("[ca]\ndefault_ca=d\n[d]\ndatabase=index\nnew_certs_dir=.\nserial=serial\ndefault_md=sha256\n"
                        "policy=p\nunique_subject=no\n[p]\ncommonName=supplied\n")
            self.run("ca", "-batch", "-config", "ca.cnf", "-rand_serial", "-cert", f"{by}.pem", "-keyfile",
                     f"{by}.key", "-in", f"{name}.csr", "-out", f"{name}.pem", "-notext", "-extfile",
                     f"{name}.ext", "-startdate", "20200101000000Z", "-enddate", "20200201000000Z")
        else:
            self.run("x509", "-req", "-in", f"{name}.csr", "-CA", f"{by}.pem", "-CAkey", f"{by}.key",
                     "-set_serial", str(int.from_bytes(os.urandom(8), "big")), "-days", str(days), "-extfile",
                     f"{name}.ext", "-out", f"{name}.pem")

    def self_signed(self, name, host):
        self.key(name)
        self.run("req", "-x509", "-new", "-key", f"{name}.key", "-subj", f"/CN={host}", "-days", "30", "-out",
                 f"{name}.pem", "-addext", f"subjectAltName=DNS:{host}")

    def pair(self, name):
        return f"{self.top}/{name}.pem", f"{self.top}/{name}.key"


def make(top):
    """The usual ones: good, and each way to be wrong, for *.test."""
    p = Pki(top)
    for name in ("good", "strange"):
        p.authority(name)
    p.leaf("one", ["one.test", "two.test", "*.wild.test"])
    p.leaf("wrong", ["other.test"])
    p.leaf("expired", ["one.test"], days=-1)
    p.leaf("stranger", ["one.test"], by="strange")
    p.self_signed("self", "one.test")
    with open(f"{top}/good.pem", encoding="ascii") as f:
        text = f.read()
    with open(p.store, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(top, 0o755)
    for name in os.listdir(top):
        os.chmod(f"{top}/{name}", 0o644)
    return p
