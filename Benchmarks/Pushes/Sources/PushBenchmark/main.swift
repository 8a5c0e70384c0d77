import Glibc

/// The commands of this program, which the scripts `run`, `latency` and `storm` use and explain.
do {
    let arguments = Array(CommandLine.arguments.dropFirst())
    switch (arguments.first, arguments.count) {
    case ("sink", 3): try runSink(certificate: arguments[1], key: arguments[2])
    case ("throughput", 6):
        guard let port = UInt16(arguments[1]), let count = Int(arguments[3]), let underway = Int(arguments[4]) else {
            throw Fault("throughput PORT AUTHORITY COUNT UNDERWAY PAYLOAD")
        }
        try runThroughput(
            port: port, authority: arguments[2], count: count, underway: underway, payload: try contents(arguments[5]))
    case ("latency", 4):
        guard let port = UInt16(arguments[1]), let rounds = Int(arguments[3]) else {
            throw Fault("latency PORT AUTHORITY ROUNDS")
        }
        try runLatency(port: port, authority: arguments[2], rounds: rounds)
    case ("fake", 2): try runFake(directory: arguments[1])
    case ("storm", 4):
        guard let count = Int(arguments[2]), let underway = Int(arguments[3]) else {
            throw Fault("storm DIRECTORY COUNT UNDERWAY")
        }
        try runStorm(directory: arguments[1], count: count, underway: underway)
    default: throw Fault("what to do? sink, throughput, latency, fake, storm")
    }
} catch {
    complain("PushBenchmark: \(error)")
    exit(1)
}
