"""How the modules stand on each other. A module may depend on modules of earlier lines only, so every arrow points down.

Package.swift says what each target depends on; this says what it may depend on. A new module needs a place here.
"""

LAYERS = [
    ["CLinux", "CNghttp2", "COpenSSL", "CSQLite", "CMariaDB", "CYAML", "CQREncode",
     "CMaxMind", "CMicroHTTPD", "CCurl", "CExpat", "CSeccomp", "CPKCS11"],
    ["Bytes", "World", "JSON", "YAML", "QR", "HTTP", "Metrics", "GSM"],
    ["Pushing", "Messaging", "Calling", "Wording"],
    ["Log", "Crypto", "EventLoop", "Hardening"],
    ["TLS", "Domain", "Curl", "Webhooks", "Seeds", "PKCS11"],
    ["HTTP1", "HTTP2", "SMPP", "Geo", "Relay"],
    ["API", "Storage", "APNs", "WebPush", "Phone", "Texting", "TwoefayClient", "KeyService"],
    ["Couriers"],
    ["Daemon", "FakeAPNs"],
    ["Demo"],
    ["twoefayd", "twoefay", "twoefay-keys"],
    ["TestSupport"],
]

# Test targets (…Tests) stand above everything.
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

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
    "CExpat": ["Sources/Security/Seeds/"],
    "CSeccomp": ["Sources/Security/Hardening/"],
    "CPKCS11": ["Sources/Security/PKCS11/"],
}

# The product knows no socket, no SQL and no C: whatever else changes, these may not appear among its dependencies.
PRODUCT = ["Domain", "Relay", "API"]
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
