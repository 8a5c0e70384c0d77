/// The metrics as text, in Prometheus format 0.0.4.
extension Registry {
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// Writes the metrics.
    ///
    /// - Parameter isIncluded: takes the name of a family, and returns whether to write it.
    public func exposition(where isIncluded: (String) -> Bool = { _ in true }) -> [UInt8] {
        var text = ""
        for family in families where isIncluded(family.name) {
            text += "# HELP \(family.name) \(Self.escaped(family.about, quote: false))\n"
            text += "# TYPE \(family.name) \(family.kind.rawValue)\n"
            for series in family.series {
                for sample in series.read() {
                    text += family.name + sample.suffix
                    var pairs = zip(family.labels, series.values).map { "\($0)=\"\(Self.escaped($1, quote: true))\"" }
                    if let upTo = sample.upTo { pairs.append("le=\"\(upTo)\"") }
                    if !pairs.isEmpty { text += "{\(pairs.joined(separator: ","))}" }
                    text += " \(sample.value)\n"
                }
            }
        }
        return Array(text.utf8)
    }

    private static func escaped(_ text: String, quote: Bool) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quote: escaped += "\\\""
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
