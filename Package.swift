// swift-tools-version: 6.2
import PackageDescription

/// The compiler settings of every target. Concurrency is strict, and a warning is an error.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// The modules that are optimised in debug builds, too. Nearly every test runs through them, and
/// without optimisation the tests spend up to half of their time in them. Assertions and overflow
/// checks remain. To step through these modules in a debugger, build with `-Xswiftc -Onone`.
///
/// SwiftPM refuses such flags in a package that another package depends on, so they are left out
/// in a checkout.
let optimized: Set =
    Context.packageDirectory.contains("/checkouts/")
    ? []
    : [
        "Attestation", "Bytes", "Crypto", "Domain", "EventLoop", "GSM", "HTTP", "HTTP1Wire", "HTTP2", "JSON", "Log",
        "Metrics", "QR", "Storage", "TLS", "Templates", "Webhooks", "World", "YAML",
    ]

/// The names of test modules that are not built, separated by spaces. Test modules take two thirds of
/// a build, so `.ci/run` names those that it does not run under the sanitizer.
let leftOut = Set((Context.environment["TWOEFAY_WITHOUT_TESTS"] ?? "").split(separator: " ").map(String.init))

/// The targets of one layer: a directory of `Sources/` with a folder for each module, and one of
/// `Tests/` with their tests. docs/internals/architecture.md says which layers a layer may import.
func layer(_ name: String, _ targets: Target...) -> [Target] {
    for target in targets where target.path == nil {
        target.path = "\(target.isTest ? "Tests" : "Sources")/\(name)/\(target.name)"
    }
    return targets
}

func module(
    _ name: String, _ dependencies: [Target.Dependency] = [], path: String? = nil, exclude: [String] = []
) -> Target {
    let optimization: [SwiftSetting] =
        optimized.contains(name)
        ? [.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))] : []
    return .target(
        name: name, dependencies: dependencies, path: path, exclude: exclude, swiftSettings: settings + optimization)
}

func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

/// - Parameter scripts: a directory of what is not Swift, and is run as it stands.
func tests(_ name: String, _ dependencies: [Target.Dependency], scripts: [String] = []) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: dependencies, exclude: scripts, swiftSettings: settings)
}

func library(_ name: String) -> Target {
    .systemLibrary(name: name)
}

/// Thin modules, one for each C library, and `CLinux` for the headers of the system.
let c = layer(
    "C",
    library("CLinux"),
    library("CNghttp2"),
    library("COpenSSL"),
    library("CSQLite"),
    library("CMariaDB"),
    library("CYAML"),
    library("CQREncode"),
    library("CMaxMind"),
    library("CMicroHTTPD"),
    library("CCurl"),
    library("CExpat"),
    library("CLDAP"),
    library("CSeccomp"),
    library("CPKCS11"))

/// Values, formats, cryptography, the clock and the log: the foundation of all other layers.
let base = layer(
    "Base",
    module("Bytes", ["CLinux"]),
    module("World", ["CLinux"]),
    module("JSON"),
    module("Metrics"),
    module("YAML", ["CYAML"]),
    module("CSV"),
    module("QR", ["CQREncode"]),
    module("Crypto", ["Bytes", "COpenSSL", "JSON", "World"]),
    module("Log", ["CLinux", "World"]),
    module("Attestation", ["Bytes", "Crypto", "JSON", "World"]),

    tests("Bytes", ["Bytes", "CLinux", "TestSupport"]),
    tests("World", ["World"]),
    tests("JSON", ["JSON"]),
    tests("Metrics", ["Metrics", "TestSupport"]),
    tests("YAML", ["YAML"]),
    tests("QR", ["QR"]),
    tests("Crypto", ["Bytes", "Crypto", "JSON", "World"]),
    tests("Log", ["JSON", "Log", "World"]),
    tests(
        "Attestation", ["Attestation", "Bytes", "Crypto", "JSON", "SimulatedAttestation", "TestSupport", "World"],
        scripts: ["Vectors"]))

/// The content of messages, and the outcomes of sending them, without a socket.
let messages = layer(
    "Messages",
    module("GSM"),
    module("DeliveryOutcomes", ["World"]),
    module("Webhooks", ["Bytes", "Crypto", "World"]),
    module("Templates", ["Bytes", "World"]),

    tests("GSM", ["GSM"]),
    tests("Webhooks", ["Bytes", "TestSupport", "Webhooks", "World"]),
    tests("Templates", ["Bytes", "GSM", "Templates", "World"]))

/// The event loop, TLS and HTTP.
let network = layer(
    "Network",
    module("EventLoop", ["CLinux", "World"]),
    module("HTTP", ["World"]),
    module("TLS", ["Bytes", "CLinux", "COpenSSL", "Crypto", "EventLoop", "World"]),
    module("Curl", ["Bytes", "CCurl", "CLinux", "EventLoop", "HTTP", "World"]),
    module("HTTP1Wire", ["HTTP"]),
    module("HTTP1", ["CMicroHTTPD", "EventLoop", "HTTP", "Log"]),
    module(
        "HTTP2", ["Bytes", "CLinux", "CNghttp2", "Crypto", "EventLoop", "HTTP", "HTTP1Wire", "Log", "TLS", "World"]),

    tests("EventLoop", ["EventLoop", "World"]),
    tests("HTTP", ["HTTP"]),
    tests("HTTP1Wire", ["FuzzTargets", "HTTP", "HTTP1Wire", "TestSupport"]),
    tests("TLS", ["Bytes", "COpenSSL", "Crypto", "EventLoop", "TLS", "TestSupport", "World"]),
    tests(
        "Curl",
        ["Bytes", "CLinux", "Crypto", "Curl", "EventLoop", "HTTP", "HTTP2", "Log", "TLS", "TestSupport", "World"]),
    tests("HTTP1", ["CLinux", "EventLoop", "HTTP", "HTTP1", "Log", "TestSupport", "World"]),
    tests(
        "HTTP2",
        [
            "Bytes", "CLinux", "Crypto", "EventLoop", "FuzzTargets", "HTTP", "HTTP1Wire", "HTTP2", "Log", "TLS",
            "TestSupport", "World",
        ]))

/// The rules, verbs and routes of Twoefay, without a socket, SQL or C.
let product = layer(
    "Product",
    module("Domain", ["Attestation", "Bytes", "Crypto", "GSM", "JSON", "Templates", "World"]),
    module(
        "Relay",
        [
            "Attestation", "Bytes", "Crypto", "DeliveryOutcomes", "Domain", "GSM", "JSON", "Log", "Metrics", "Webhooks",
            "World",
        ]),
    module("Directory", ["Domain", "JSON"]),
    module(
        "PhoneApp", ["Attestation", "Bytes", "Crypto", "HTTP", "JSON"],
        // Embedded has them as Swift.
        exclude: ["Assets", "README.md"]),
    module(
        "API",
        [
            "Attestation", "Bytes", "Crypto", "Domain", "HTTP", "JSON", "Log", "Metrics", "PhoneApp", "QR", "Relay",
            "Templates", "World",
        ]),

    tests("Directory", ["Directory", "Domain"]),
    tests("Domain", ["Attestation", "Bytes", "Crypto", "Domain", "GSM", "JSON", "TestSupport", "World"]),
    tests(
        "Relay",
        [
            "Attestation", "Bytes", "Crypto", "DeliveryOutcomes", "Domain", "EventLoop", "JSON", "Log", "Metrics",
            "Relay", "SimulatedAttestation", "Storage", "TestSupport", "Webhooks", "World",
        ]),
    tests("Race", ["Domain", "Relay", "Storage", "TestSupport"]),
    tests(
        "API",
        [
            "API", "Attestation", "Bytes", "Crypto", "DeliveryOutcomes", "Domain", "EventLoop", "HTTP", "JSON", "Log",
            "Metrics", "PhoneApp", "Relay", "Storage", "TestSupport", "World",
        ]))

/// The databases: the store, and the locations of addresses.
let storage = layer(
    "Storage",
    module("Geo", ["CLinux", "CMaxMind", "Domain", "World"]),
    module("DirectorySources", ["Bytes", "CLDAP", "CLinux", "CSV", "Directory", "EventLoop", "World"]),
    module(
        "Storage",
        [
            "Attestation", "Bytes", "CMariaDB", "CSQLite", "Crypto", "Directory", "Domain", "EventLoop", "GSM", "JSON",
            "Log", "Metrics", "Relay", "Webhooks", "World",
        ]),

    tests("Geo", ["Domain", "Geo", "TestSupport", "World"]),
    tests("DirectorySources", ["Bytes", "CSV", "Crypto", "Directory", "DirectorySources", "TestSupport", "World"]),
    tests(
        "Storage",
        [
            "Attestation", "Bytes", "CLinux", "Crypto", "Directory", "Domain", "EventLoop", "GSM", "JSON", "Log",
            "Relay", "Storage", "TestSupport", "Webhooks", "World",
        ]))

/// The senders of pushes, mails, text messages and webhooks.
let delivery = layer(
    "Delivery",
    module("SMPP", ["Bytes", "EventLoop", "GSM", "TLS", "World"]),
    module(
        "Pushes",
        ["Bytes", "Crypto", "DeliveryOutcomes", "EventLoop", "HTTP", "HTTP2", "JSON", "Log", "TLS", "World"]),
    module("WebPush", ["Bytes", "Crypto", "Curl", "DeliveryOutcomes", "EventLoop", "HTTP", "JSON", "Log", "World"]),
    module(
        "SMS",
        ["Bytes", "Curl", "DeliveryOutcomes", "EventLoop", "GSM", "HTTP", "JSON", "Log", "SMPP", "World"]),
    module(
        "Couriers",
        [
            "Bytes", "Curl", "DeliveryOutcomes", "Domain", "GSM", "HTTP", "JSON", "Log", "Pushes", "QR", "Relay",
            "SMS", "Templates", "WebPush", "Webhooks", "World",
        ]),

    tests("SMPP", ["Bytes", "Crypto", "EventLoop", "GSM", "SMPP", "TLS", "TestSupport", "World"]),
    tests(
        "Pushes",
        [
            "Bytes", "Crypto", "DeliveryOutcomes", "EventLoop", "FakePushServices", "HTTP", "HTTP2", "JSON", "Log",
            "Pushes", "TLS", "TestSupport", "World",
        ]),
    tests(
        "WebPush",
        [
            "Bytes", "Crypto", "Curl", "DeliveryOutcomes", "EventLoop", "HTTP", "HTTP2", "JSON", "Log", "TLS",
            "TestSupport", "WebPush", "World",
        ]),
    tests(
        "SMS",
        [
            "Bytes", "Curl", "DeliveryOutcomes", "Domain", "EventLoop", "GSM", "HTTP", "JSON", "Log", "SMPP", "SMS",
            "TestSupport", "World",
        ]),
    tests(
        "Couriers",
        [
            "Bytes", "Couriers", "Crypto", "Curl", "DeliveryOutcomes", "Domain", "EventLoop", "GSM", "HTTP", "HTTP2",
            "JSON", "Log", "Pushes", "QR", "Relay", "SMS", "TLS", "Templates", "TestSupport", "WebPush", "Webhooks",
            "World",
        ]))

/// Keys outside the relay, and the restrictions of its process.
let security = layer(
    "Security",
    module("Hardening", ["CLinux", "CSeccomp"]),
    module("PKCS11", ["Bytes", "CPKCS11", "Crypto"]),
    module("TokenFiles", ["Bytes", "CExpat", "CSV", "Crypto", "World"]),
    module("KeyService", ["Bytes", "CLinux", "Crypto", "Domain", "EventLoop", "JSON", "Log", "Relay", "World"]),

    module("EST", ["Bytes", "Crypto", "Curl", "EventLoop", "HTTP", "Relay", "World"]),

    tests(
        "EST",
        [
            "Bytes", "Crypto", "Curl", "Domain", "EST", "EventLoop", "HTTP", "HTTP2", "Log", "Relay", "TLS",
            "TestSupport", "World",
        ]),
    tests("Hardening", ["CLinux", "Hardening", "TestSupport"]),
    tests("TokenFiles", ["Bytes", "TestSupport", "TokenFiles", "World"]),
    tests(
        "KeyService",
        [
            "Bytes", "CLinux", "Crypto", "Domain", "EventLoop", "JSON", "KeyService", "Log", "Relay", "TestSupport",
            "World", "twoefay-keys",
        ]))

/// The other ends of connections: websites, phones and a push service. They know nothing of the
/// product.
let clients = layer(
    "Clients",
    module("SimulatedAttestation", ["Attestation", "Bytes", "Crypto", "World"]),
    module(
        "TwoefayClient",
        [
            "Attestation", "Bytes", "Crypto", "EventLoop", "HTTP", "HTTP2", "JSON", "Log", "QR", "TLS", "Webhooks",
            "World",
        ]),
    module(
        "Phone",
        [
            "Attestation", "Bytes", "Crypto", "EventLoop", "HTTP", "HTTP2", "JSON", "Log", "SimulatedAttestation",
            "TLS",
            "World",
        ]),
    module(
        "FakePushServices",
        ["Bytes", "CLinux", "Crypto", "EventLoop", "HTTP", "HTTP2", "JSON", "Log", "TLS", "World", "YAML"]),

    tests(
        "TwoefayClient",
        [
            "Attestation", "Bytes", "CSQLite", "Crypto", "EventLoop", "HTTP", "HTTP2", "JSON", "SimulatedAttestation",
            "TLS", "TestSupport", "TwoefayClient", "Webhooks", "World", "twoefay", "twoefayd",
        ]),
    tests(
        "Phone",
        [
            "Attestation", "Bytes", "CLinux", "Crypto", "EventLoop", "HTTP", "JSON", "Phone", "TLS", "TestSupport",
            "TwoefayClient", "World", "twoefay", "twoefay-keys", "twoefayd",
        ], scripts: ["Page"]),
    tests(
        "FakePushServices",
        [
            "Bytes", "Crypto", "EventLoop", "FakePushServices", "HTTP", "HTTP2", "JSON", "Log", "TLS", "TestSupport",
            "World",
        ]))

/// The programs, their settings and their assembly.
let programs = layer(
    "Programs",
    module(
        "Daemon",
        [
            "API", "Attestation", "Bytes", "CLinux", "Couriers", "Crypto", "Curl", "DeliveryOutcomes", "Directory",
            "DirectorySources", "Domain", "EST", "EventLoop", "GSM", "Geo", "HTTP", "HTTP1", "HTTP2", "Hardening",
            "JSON", "KeyService", "Log", "Metrics", "PKCS11", "PhoneApp", "Pushes", "QR", "Relay", "SMPP", "SMS",
            "Storage",
            "TLS", "Templates", "WebPush", "Webhooks", "World", "YAML",
        ]),
    module(
        "Demo",
        [
            "Bytes", "CLinux", "Crypto", "Daemon", "Domain", "EventLoop", "FakePushServices", "HTTP", "HTTP1",
            "HTTP2", "JSON", "Log", "Phone", "QR", "Relay", "Storage", "TLS", "TwoefayClient", "Webhooks", "World",
        ],
        // Pages/Embedded has them as Swift.
        exclude: ["Pages/Assets"]),
    module(
        "Commands",
        ["Bytes", "Crypto", "Daemon", "Domain", "JSON", "QR", "Relay", "Storage", "Webhooks", "World"]),
    program("twoefayd", ["CLinux", "Commands", "Daemon"]),
    program("twoefay-keys", ["Daemon"]),
    program(
        "twoefay",
        [
            "API", "Bytes", "CLinux", "Commands", "Couriers", "Crypto", "Curl", "Daemon", "DeliveryOutcomes", "Demo",
            "Directory", "Domain", "EventLoop", "FakePushServices", "GSM", "HTTP", "HTTP1", "JSON", "Log", "Phone",
            "QR", "Relay", "SMS", "Storage", "TLS", "Templates", "TokenFiles", "TwoefayClient", "Webhooks", "World",
        ]),

    tests(
        "Daemon",
        [
            "Attestation", "Bytes", "CLinux", "Couriers", "Crypto", "Curl", "Daemon", "Directory", "Domain",
            "EventLoop", "GSM", "HTTP", "Hardening", "JSON", "KeyService", "Log", "Metrics", "Pushes", "QR", "Relay",
            "SMPP", "SMS", "Storage", "TLS", "TestSupport", "World", "YAML",
        ]),
    tests(
        "Demo",
        [
            "Bytes", "Crypto", "Demo", "EventLoop", "Geo", "HTTP", "HTTP1", "JSON", "Log", "Phone", "TLS",
            "TestSupport", "TwoefayClient", "World", "twoefay", "twoefayd",
        ]))

/// Code that the test suites share.
let support = layer(
    "Support",
    module(
        "TestSupport",
        [
            "API", "Bytes", "CLinux", "Crypto", "Curl", "Daemon", "DeliveryOutcomes", "Domain", "EventLoop",
            "FakePushServices", "GSM", "HTTP", "HTTP2", "JSON", "Log", "Metrics", "Relay", "SMPP", "Storage", "TLS",
            "WebPush", "Webhooks", "World",
        ], path: "Tests/Support/TestSupport"),
    module("FuzzTargets", ["HTTP", "HTTP1Wire"], path: "Tests/Support/FuzzTargets"),
    tests("FuzzTargets", ["FuzzTargets", "TestSupport"]),
    tests("TestSupport", ["Log", "Storage", "TestSupport", "World"]))

/// Tests of whole programs, and simulations of the relay.
let system = layer(
    "System",
    tests(
        "EndToEnd",
        [
            "Bytes", "CLinux", "COpenSSL", "Crypto", "EventLoop", "FakePushServices", "HTTP", "HTTP2", "JSON", "Log",
            "TLS", "TestSupport", "World", "twoefay", "twoefayd",
        ], scripts: ["HTTP1"]),
    tests(
        "Faults",
        [
            "Bytes", "CLinux", "Crypto", "Daemon", "Domain", "EventLoop", "FakePushServices", "HTTP", "HTTP2", "JSON",
            "Log", "Relay", "Storage", "TLS", "TestSupport", "WebPush", "Webhooks", "World", "twoefay",
            "twoefay-keys", "twoefayd",
        ]),
    tests(
        "Program",
        [
            "Bytes", "CLinux", "Commands", "Crypto", "Daemon", "Domain", "HTTP", "JSON", "Log", "Storage",
            "TestSupport", "TwoefayClient", "World", "twoefay", "twoefayd",
        ]),
    tests(
        "Simulation",
        [
            "Bytes", "Crypto", "DeliveryOutcomes", "Domain", "EventLoop", "HTTP", "JSON", "Relay", "Storage",
            "TestSupport", "Webhooks", "World",
        ]),
    tests("BrowserPhone", ["TestSupport", "twoefay", "twoefayd"], scripts: ["Script", "Unit"]),
    tests("Tour", ["JSON", "TestSupport", "twoefay", "twoefayd"], scripts: ["Script"]))

let package = Package(
    name: "twoefay",
    products: [
        .executable(name: "twoefayd", targets: ["twoefayd"]),
        .executable(name: "twoefay", targets: ["twoefay"]),
        .executable(name: "twoefay-keys", targets: ["twoefay-keys"]),
        // What the packages under Benchmarks/ measure.
        .library(
            name: "components",
            targets: [
                "Bytes", "Couriers", "Crypto", "Curl", "DeliveryOutcomes", "Domain", "EventLoop", "FakePushServices",
                "HTTP", "HTTP2", "JSON", "Log", "Metrics", "Pushes", "Relay", "SMS", "Storage", "TLS", "Templates",
                "Webhooks", "World",
            ]),
        .library(name: "Pushes", targets: ["Pushes"]),
        // For websites in Swift, with the modules whose types it speaks in: docs/websites/by-hand.md.
        .library(
            name: "TwoefayClient",
            targets: ["TwoefayClient", "Attestation", "Bytes", "Crypto", "HTTP", "JSON", "Webhooks", "World"]),
    ],
    targets: [
        c, base, messages, network, product, storage, delivery, security, clients, programs, support, system,
    ].flatMap { $0 }.filter { !leftOut.contains($0.name) }
)
