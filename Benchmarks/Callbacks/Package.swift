// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "callbacks-benchmark",
    dependencies: [.package(name: "twoefay", path: "../..")],
    targets: [
        .executableTarget(
            name: "CallbacksBenchmark",
            dependencies: [.product(name: "parts", package: "twoefay")],
            swiftSettings: [
                .swiftLanguageMode(.v6),
                .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
                .enableUpcomingFeature("ExistentialAny"),
                .treatAllWarnings(as: .error),
            ])
    ]
)
