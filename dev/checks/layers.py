"""Which module may import which: docs/internals/architecture.md says it, and this reads it.

The page has a table of layers, each with what it may import, and a table of modules for each layer. A module may import
only modules further down the page; from another layer, only what its layer's row names: whole layers, or single modules.
Package.swift says what each target does depend on. Tests may import everything.
"""
import re

PAGE = "docs/internals/architecture.md"


class Layers:
    """The tables of the page."""

    def __init__(self, text):
        # For each layer the names in its row, and the line of that row.
        self.allowed, self.row = {}, {}
        # For each module its layer, and its line, which is its place in the order.
        self.layer_of, self.rank = {}, {}
        heading, header = "", []
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("#"):
                heading = line.lstrip("#").strip()
            if not line.startswith("|"):
                header = []
                continue
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not header:
                header = cells
                continue
            named = [re.findall(r"`([\w-]+)`", cell) for cell in cells]
            if header[0] == "layer" and header[-1] == "may import":
                for layer in named[0]:
                    self.allowed[layer], self.row[layer] = named[-1], number
            elif header[0] == "module":
                # Modules of one row have one place, so they do not import each other.
                for module in named[0]:
                    self.layer_of[module], self.rank[module] = heading, number

    def allows(self, layer, module):
        """Whether the modules of a layer may import this module of another one."""
        allowed = self.allowed.get(layer, [])
        return module in allowed or self.layer_of.get(module) in allowed


# Each C library has the modules that may touch it. CLinux is the system's own headers: anybody's below the product.
C_USERS = {
    "CNghttp2": ["Sources/Network/HTTP2/"],
    "COpenSSL": ["Sources/Base/Crypto/", "Sources/Network/TLS/"],
    "CSQLite": ["Sources/Storage/Storage/SQLite/"],
    "CMariaDB": ["Sources/Storage/Storage/MariaDB/"],
    "CYAML": ["Sources/Base/YAML/"],
    "CQREncode": ["Sources/Base/QR/"],
    "CMaxMind": ["Sources/Storage/Geo/"],
    "CMicroHTTPD": ["Sources/Network/HTTP1/"],
    "CCurl": ["Sources/Network/Curl/"],
    "CExpat": ["Sources/Security/TokenFiles/"],
    "CLDAP": ["Sources/Storage/DirectorySources/LDAP/"],
    "CSeccomp": ["Sources/Security/Hardening/"],
    "CPKCS11": ["Sources/Security/PKCS11/"],
}

# The product knows no socket, no SQL and no C: whatever the page allows, these may not appear among its dependencies.
PRODUCT = ["Domain", "Relay", "Directory", "API"]
FOREIGN_TO_PRODUCT = [
    "EventLoop", "TLS", "Curl", "HTTP1", "HTTP2", "Geo", "Storage", "WebPush", "Couriers", "YAML",
    "CLinux", *C_USERS,
]

# What the toolchain brings and any file may import. Foundation in all its forms is left out on purpose.
TOOLCHAIN = ["Swift", "Glibc", "Synchronization", "_Concurrency"]
TOOLCHAIN_FOR_TESTS = ["Testing"]

# Where a promise that the compiler cannot check is allowed, always with its guard stated above it.
UNCHECKED = [
    "Sources/Base/Bytes/SecretStorage.swift", "Sources/Base/Crypto/",
    "Sources/Network/EventLoop/", "Sources/Network/TLS/", "Sources/Network/HTTP1/", "Sources/Network/HTTP2/",
    "Sources/Storage/Storage/SQLite/", "Sources/Storage/Storage/MariaDB/", "Sources/Storage/Geo/",
]
