// swift-tools-version: 6.0
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
]

var products: [Product] = [.library(name: "TwoefayPhone", targets: ["TwoefayPhone"])]
var targets: [Target] = [.target(name: "TwoefayPhone", swiftSettings: settings)]

#if os(Linux)
    // The tests run on Linux, over OpenSSL and libcurl (libssl-dev, libcurl4-openssl-dev).
    targets += [
        .systemLibrary(name: "CLinuxPhone", path: "Tests/Linux/CLinuxPhone"),
        .target(
            name: "LinuxPhone", dependencies: ["TwoefayPhone", "CLinuxPhone"], path: "Tests/Linux/LinuxPhone",
            swiftSettings: settings),
        .testTarget(name: "TwoefayPhoneTests", dependencies: ["TwoefayPhone", "LinuxPhone"], swiftSettings: settings),
    ]
#else
    products.append(.library(name: "TwoefayPhoneApple", targets: ["TwoefayPhoneApple"]))
    targets.append(.target(name: "TwoefayPhoneApple", dependencies: ["TwoefayPhone"], swiftSettings: settings))
#endif

let package = Package(
    name: "twoefay-phone", platforms: [.iOS(.v16), .macOS(.v13)], products: products, targets: targets)
