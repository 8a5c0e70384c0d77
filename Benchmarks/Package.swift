// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

let components = Target.Dependency.product(name: "components", package: "twoefay")

/// Returns the target of the program that `Benchmarks/NAME/run` starts.
func benchmark(_ name: String) -> Target {
    .executableTarget(
        name: "\(name)Benchmark", dependencies: ["Measuring", components],
        path: "\(name)/Sources/\(name)Benchmark", swiftSettings: settings)
}

let package = Package(
    name: "benchmarks",
    dependencies: [.package(name: "twoefay", path: "..")],
    targets: [
        .executableTarget(name: "health", dependencies: [components], swiftSettings: settings),
        .target(name: "Measuring", dependencies: [components], swiftSettings: settings),
        benchmark("Webhooks"), benchmark("Codes"), benchmark("Decisions"), benchmark("Fairness"),
        benchmark("Storage"), benchmark("Users"), benchmark("Waits"),
    ]
)
