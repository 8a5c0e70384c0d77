import YAML

/// Reads the stream limits of connections: one number, or a list of phases.
extension ControlReader {
    mutating func streamLimits(_ node: YAMLNode) -> StreamLimits? {
        guard node.mapping != nil else { return step(node).map { StreamLimits(steps: [$0]) } }
        _ = members(of: node, "streams", knows: ["unproved", "steps"])
        let unproved = node["unproved"].flatMap { number($0, "unproved", 0...Int(UInt32.max)) }
        var steps: [StreamLimits.Phase] = []
        if let list = node["steps"] {
            for item in items(of: list, "steps") { if let step = step(item) { steps.append(step) } }
        } else {
            problem(
                node.place, "steps is missing, as in steps: [{limit: 1, requests: 500}, {limit: 1000, requests: 500}]")
        }
        if steps.count > 1, let endless = steps.firstIndex(where: { $0.requests == nil && $0.duration == nil }),
            endless < steps.count - 1, let place = node["steps"]?.place
        {
            problem(place, "step \(endless + 1) never ends, so the next one never begins: add requests or for")
        }
        return StreamLimits(unproved: unproved.map { UInt32($0) }, steps: steps)
    }

    private mutating func step(_ node: YAMLNode) -> StreamLimits.Phase? {
        guard node.mapping != nil else {
            let limit = limit(node)
            return limit.isRight ? StreamLimits.Phase(limit.value) : nil
        }
        _ = members(of: node, "a step", knows: ["limit", "requests", "for"])
        guard let value = node["limit"] else {
            problem(node.place, "limit is missing: a number, or none")
            return nil
        }
        let requests = node["requests"].flatMap { number($0, "requests", 1...1_000_000_000) }
        let time = node["for"].flatMap { duration($0, "for") }
        if time == .zero, let place = node["for"]?.place { problem(place, "for must be greater than 0") }
        let limit = limit(value)
        guard limit.isRight else { return nil }
        if limit.value == 0, requests != nil, time == nil {
            problem(node.place, "with a limit of 0 there are no requests to count: use for")
        }
        return StreamLimits.Phase(limit.value, requests: requests, duration: time)
    }

    /// Reads a limit. The value is nil for `none`; `isRight` is false if the text is invalid.
    private mutating func limit(_ node: YAMLNode) -> (value: UInt32?, isRight: Bool) {
        if node.string == "none" { return (nil, true) }
        let number = number(node, "the limit of streams (or none)", 0...Int(UInt32.max))
        return (number.map { UInt32($0) }, number != nil)
    }
}
