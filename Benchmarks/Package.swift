// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

let parts = Target.Dependency.product(name: "parts", package: "twoefay")

/// The program of `Benchmarks/NAME/run`.
func benchmark(_ name: String) -> Target {
    .executableTarget(
        name: "\(name)Benchmark", dependencies: ["Measuring", parts],
        path: "\(name)/Sources/\(name)Benchmark", swiftSettings: settings)
}

let package = Package(
    name: "benchmarks",
    dependencies: [.package(name: "twoefay", path: "..")],
    targets: [
        .executableTarget(name: "health", dependencies: [parts], swiftSettings: settings),
        .target(name: "Measuring", dependencies: [parts], swiftSettings: settings),
        benchmark("Callbacks"), benchmark("Codes"), benchmark("Decisions"), benchmark("Fairness"),
        benchmark("Storage"), benchmark("Users"), benchmark("Waits"),
    ]
)
