// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "pushes-benchmark",
    dependencies: [.package(name: "twoefay", path: "../..")],
    targets: [
        .executableTarget(
            name: "PushBenchmark", dependencies: [.product(name: "components", package: "twoefay")], swiftSettings: settings)
    ]
)
